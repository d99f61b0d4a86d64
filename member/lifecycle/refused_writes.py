"""Components whose new spec the API server refuses, e.g. because of a quota, a policy, or a port or name in use.

The operator maintains the pods as they run: it scales them, replaces lost ones, and gives back what a roll has moved
away. After a pause it tries the new spec again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kube.actions import AnnotateAlone, Decision
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
from member.context import ClusterContext
from member.outcome import NOT_OURS, Done, Failed, NotDone, Outcome, first_retry, in_time_for, of_others

T = TypeVar("T")

_NO_JUDGEMENT = (Unauthorized, NotFound, AlreadyExists, Conflict, Expired, TooManyRequests)
"""Errors that are no verdict on the spec: the next attempt may succeed, or another step handles them."""


async def first_refusal(
    ctx: ClusterContext, component: str, writes: Iterable[Callable[[], Decision[None]]]
) -> NotDone | None:
    """Run each of `writes`, which leave the component's pods alone; the first refusal, None if all succeed.

    Continues after a refusal. Raises ApiError, TransportError.
    """
    answers = [await attempted(ctx, f"beside {component} {number}", write) for number, write in enumerate(writes)]
    found = [refusal for _, refusal in answers if refusal is not None]
    headline = next((outcome for outcome in found if isinstance(outcome, Failed)), None) or next(iter(found), None)
    return headline and replace(headline, retry_after=first_retry(found))


async def attempted(ctx: ClusterContext, key: str, act: Callable[[], Decision[T]]) -> tuple[T | None, NotDone | None]:
    """Run `act`: its result and None, or None and the refusal.

    After a refusal, `act` does not run until a pause is over. `key` distinguishes it from other writes of the same
    cluster. Raises what `act` raises.
    """
    refusals, clock = ctx.memory.refusals, ctx.deps.clock
    if standing := refusals.standing(key, partial(_wanted, ctx), clock):
        return None, standing
    try:
        done = await act()
    except NOT_OURS as error:
        return None, of_others(error)
    except ApiError as error:
        return None, refusals.note(key, _wanted(ctx), _refusal(error), clock)
    refusals.forget(key)
    return done, None


async def updated(
    ctx: ClusterContext,
    component: str,
    update: Callable[[], Decision[Outcome]],
    as_it_runs: Callable[[], Decision[Outcome]],
) -> tuple[Outcome, NotDone | None]:
    """Run `update`, or `as_it_runs` if the API server refuses the update; the outcome, and the refusal if any.

    Raises what the two raise.
    """
    outcome, refused = await attempted(ctx, component, update)
    return (await kept(ctx, component, as_it_runs) if outcome is None else outcome), refused


async def kept(ctx: ClusterContext, component: str, as_it_runs: Callable[[], Decision[Outcome]]) -> Outcome:
    """Run `as_it_runs` after a refusal; Done if the API server refuses that as well. Raises like `updated`."""
    # assume that the refused update would have restarted pods, so that later components wait
    ctx.rolls_to_come.add(component)
    outcome, _ = await attempted(ctx, f"{component} as it runs", as_it_runs)
    return Done() if outcome is None else outcome


async def noted(live: Object, annotations: Mapping[str, str]) -> None:
    """Annotate a StatefulSet; do nothing if the API server refuses it or would change the spec in the course.

    Raises Conflict, other ApiErrors that are no verdict, TransportError.
    """
    try:
        await AnnotateAlone(STATEFUL_SETS, live, annotations)
    except ApiError as error:
        _refusal(error)


def with_refusal(refused: NotDone | None, outcome: Outcome) -> Outcome:
    """Combine a refusal with the component's other outcome."""
    if refused is None:
        return outcome
    message = refused.message if isinstance(outcome, Done) else f"{refused.message}; {outcome.message}"
    return in_time_for(replace(refused, message=message), outcome)


def _refusal(error: ApiError) -> Failed:
    """`error` as a failure, if it is a verdict that a repetition would not change; else raises it."""
    by_webhook = isinstance(error, InternalError) and "webhook" in error.message
    if by_webhook or (error.code < 500 and not isinstance(error, _NO_JUDGEMENT)):
        return Failed(type(error).__name__, str(error))
    raise error


def _wanted(ctx: ClusterContext) -> bytes:
    """A digest of the spec; with a changed spec the operator tries all refused writes at once."""
    return digest(ctx.owner.decode().get("spec"))
