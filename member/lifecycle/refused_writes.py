"""What goes on with a component whose new spec the API server refuses: a quota, a policy, a port or name that is taken.

Its pods are looked after as they run: they are scaled, failed over, and given back what a roll has moved away. The new
spec is tried again after a pause.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    InternalError,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from kube.objects import Object, digest
from kube.resources import STATEFUL_SETS
from member.apply.names_of_others import NOT_OURS, of_others
from member.context import ClusterContext
from member.outcome import Done, Failed, NotDone, Outcome, in_time_for

T = TypeVar("T")

_NO_JUDGEMENT = (Unauthorized, NotFound, AlreadyExists, Conflict, Expired, TooManyRequests)
"""What the next attempt may meet otherwise, or what asks for another decision."""


def first_refusal(ctx: ClusterContext, component: str, writes: Iterable[Callable[[], None]]) -> NotDone | None:
    """Carry out what leaves the pods of a component alone; why the first one that can't be is not, None if all are.

    Raises ApiError, TransportError.
    """
    refusals, key, clock = ctx.memory.refusals, f"beside {component}", ctx.deps.clock
    if standing := refusals.standing(key, partial(_wanted, ctx), clock):
        return standing
    refused, taken = None, None
    for write in writes:
        try:
            write()
        except NOT_OURS as error:
            taken = taken or of_others(error)
        except ApiError as error:
            refused = refused or _refusal(error)
    if refused is None:
        refusals.forget(key)
        return taken
    return refusals.note(key, _wanted(ctx), refused, clock)


def updated(
    ctx: ClusterContext, component: str, update: Callable[[], Outcome], as_it_runs: Callable[[], Outcome]
) -> tuple[Outcome, NotDone | None]:
    """What comes of the update of a component, and why it is kept `as_it_runs`, if it is.

    Raises what the two raise.
    """
    outcome, refused = attempted(ctx, component, update)
    if outcome is not None:
        return outcome, None
    # nobody knows what the update would have done to its pods
    ctx.rolls_to_come.add(component)
    kept, _ = attempted(ctx, f"{component} as it runs", as_it_runs)
    return kept or Done(), refused


def attempted(ctx: ClusterContext, what: str, write: Callable[[], T]) -> tuple[T | None, NotDone | None]:
    """What comes of a write, or why it can't be made; what was refused is not asked for again before a pause.

    `what` names it among those of the cluster. Raises what it raises.
    """
    refusals, clock = ctx.memory.refusals, ctx.deps.clock
    if standing := refusals.standing(what, partial(_wanted, ctx), clock):
        return None, standing
    try:
        answer = write()
    except NOT_OURS as error:
        return None, of_others(error)
    except ApiError as error:
        return None, refusals.note(what, _wanted(ctx), _refusal(error), clock)
    refusals.forget(what)
    return answer, None


def made_at_least(make: Callable[[], T], make_as_it_ran: Callable[[], T] | None) -> T:
    """Make something; where that is refused, as it was, if anything tells how. Raises what the last try raises."""
    try:
        return make()
    except ApiError as error:
        if make_as_it_ran is None:
            raise
        _refusal(error)
    return make_as_it_ran()


def noted(ctx: ClusterContext, live: Object, annotations: Mapping[str, str]) -> None:
    """Note on a StatefulSet what nobody waits for; not where the server refuses that, or changes more in the course.

    Raises Conflict, other ApiErrors that are no judgement, TransportError.
    """
    try:
        ctx.deps.applier.annotate_alone(STATEFUL_SETS, live, annotations)
    except ApiError as error:
        _refusal(error)


def with_refusal(refused: NotDone | None, outcome: Outcome) -> Outcome:
    """A refusal, and what else there is to say of the component."""
    if refused is None:
        return outcome
    message = refused.message if isinstance(outcome, Done) else f"{refused.message}; {outcome.message}"
    return in_time_for(replace(refused, message=message), outcome)


def _refusal(error: ApiError) -> Failed:
    """The error, if the server has judged what it was asked for, and would do so again. Raises it if not."""
    by_webhook = isinstance(error, InternalError) and "webhook" in error.message
    if by_webhook or (error.code < 500 and not isinstance(error, _NO_JUDGEMENT)):
        return Failed(type(error).__name__, str(error))
    raise error


def _wanted(ctx: ClusterContext) -> bytes:
    """The spec that is refused; with another one all is tried at once."""
    return digest(ctx.owner.decode().get("spec"))
