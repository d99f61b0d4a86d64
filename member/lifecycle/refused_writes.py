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
from member.outcome import Done, Failed, NotDone, Outcome, first_retry, in_time_for

T = TypeVar("T")

_NO_JUDGEMENT = (Unauthorized, NotFound, AlreadyExists, Conflict, Expired, TooManyRequests)
"""What the next attempt may meet otherwise, or what asks for another decision."""


def first_refusal(ctx: ClusterContext, component: str, writes: Iterable[Callable[[], None]]) -> NotDone | None:
    """Carry out what leaves the pods of a component alone, each by itself; why the first that can't be is not.

    None if all are. Raises ApiError, TransportError.
    """
    answers = (attempted(ctx, f"beside {component} {number}", write)[1] for number, write in enumerate(writes))
    found = [each for each in answers if each is not None]
    told = next((each for each in found if isinstance(each, Failed)), None) or next(iter(found), None)
    return told and replace(told, retry_after=first_retry(found))


def attempted(ctx: ClusterContext, key: str, act: Callable[[], T]) -> tuple[T | None, NotDone | None]:
    """What comes of `act`, or why it is refused; then it waits for the next attempt.

    `key` tells it from all else that the API server may refuse of the cluster. Raises what `act` raises.
    """
    refusals, clock = ctx.memory.refusals, ctx.deps.clock
    if standing := refusals.standing(key, partial(_wanted, ctx), clock):
        return None, standing
    try:
        done = act()
    except NOT_OURS as error:
        return None, of_others(error)
    except ApiError as error:
        return None, refusals.note(key, _wanted(ctx), _refusal(error), clock)
    refusals.forget(key)
    return done, None


def updated(
    ctx: ClusterContext, component: str, update: Callable[[], Outcome], as_it_runs: Callable[[], Outcome]
) -> tuple[Outcome, NotDone | None]:
    """What comes of the update of a component, and why it is kept `as_it_runs`, if it is.

    Raises what the two raise.
    """
    outcome, refused = attempted(ctx, component, update)
    return (kept(ctx, component, as_it_runs) if outcome is None else outcome), refused


def kept(ctx: ClusterContext, component: str, as_it_runs: Callable[[], Outcome]) -> Outcome:
    """What comes of keeping a component as it runs; Done where that is refused as well. Raises as `updated`."""
    # nobody knows what the update would have done to its pods
    ctx.rolls_to_come.add(component)
    outcome, _ = attempted(ctx, f"{component} as it runs", as_it_runs)
    return Done() if outcome is None else outcome


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
