"""What goes on with a component whose new spec the API server refuses: a quota, a policy, a port or name that is taken.

Its pods are looked after as they run: they are scaled, failed over, and given back what a roll has moved away. The new
spec is tried again after a pause.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

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
from kube.objects import digest
from member.apply.names_of_others import NOT_OURS, of_others
from member.context import ClusterContext
from member.outcome import Done, Failed, NotDone, Outcome, in_time_for

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
    refusals, clock = ctx.memory.refusals, ctx.deps.clock
    refused: NotDone | None = refusals.standing(component, partial(_wanted, ctx), clock)
    if refused is None:
        try:
            outcome = update()
        except NOT_OURS as error:
            refused = of_others(error)
        except ApiError as error:
            refused = refusals.note(component, _wanted(ctx), _refusal(error), clock)
        else:
            refusals.forget(component)
            return outcome, None
    # nobody knows what the update would have done to its pods
    ctx.rolls_to_come.add(component)
    try:
        return as_it_runs(), refused
    except ApiError as error:
        _refusal(error)
        return Done(), refused


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
