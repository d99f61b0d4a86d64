"""Scale-in, pod by pod from the highest ordinal down, and its cancellation (lifecycle.md 8.1, 8.3, 8.5).

No pod leaves unless all leaving pods can: `PodRemoval.staying` has the pods that remain, for each drain. A pod goes
once nothing of it is left in the data plane and the live spec asks for fewer pods. Its claims are marked first, and
then the StatefulSet shrinks.

Several pods may leave at a time. A StatefulSet removes its highest ordinals, so a drained pod goes as soon as all above
it are drained, even if lower ones take longer or fail (F37).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from structlog.contextvars import bound_contextvars

from apis.accessor import Component
from apis.accessor import component as component_of
from dataplane.errors import DataPlaneError
from kube.actions import Decision
from kube.errors import ApiError, Conflict
from kube.objects import Json
from member.apply.stateful_set import Replicas
from member.context import ClusterContext
from member.evidence import Evidence, spec_or_wait
from member.lifecycle import pod_removal
from member.lifecycle.pod_removal import PodRemoval
from member.outcome import Failed, NotDone, Refused, Waiting, first_retry
from member.polling import next_poll
from ports.transport import TransportError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """How a component gives up pods.

    `limit`: how many may leave at a time. `drain` takes a pod out of the data plane step by step, and returns Evidence
    once nothing of it is left there. `cancel` undoes such steps if the pod is to stay: it returns None once all is as
    before, and Evidence if the pod has already left.
    """

    limit: Callable[[Component], int]
    drain: Callable[[PodRemoval], Decision[Evidence | NotDone]]
    cancel: Callable[[PodRemoval], Decision[Evidence | NotDone | None]]


async def next_lower_replicas(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, wanted: int
) -> tuple[Replicas, NotDone]:
    """The replicas that the StatefulSet gets in this reconcile, and what the remaining scale-in waits for."""
    there = body["spec"]["replicas"]
    chosen = range(there - 1, wanted - 1, -1)[: scale_in.limit(component_of(ctx.tc, component))]
    gone: list[Evidence] = []
    unfinished: list[NotDone] = []
    for ordinal in chosen:
        left = await _attempt(_drain_one(ctx, component, scale_in, body, ordinal, staying=wanted))
        if not isinstance(left, Evidence):
            unfinished.append(left)
        elif not unfinished:
            gone.append(left)
    going = Waiting("ScalingIn", f"scaling in from {there} to {wanted} pods")
    return Replicas.lowered(body, gone), _joined(unfinished) if unfinished else going


async def cancel_removals(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, wanted: int
) -> tuple[int, NotDone | None]:
    """Cancel scale-ins that were begun among the `wanted` lowest pods; the number of pods that can stay (F36).

    The first pod that has already left the data plane must go, and all above it: its data cannot return.
    """
    for ordinal in range(wanted):
        # the cache may show marks of a claim that has been deleted
        if not pod_removal.cached(ctx, component, body, ordinal).begun:
            continue
        answer = await _attempt(_cancel_one(ctx, component, scale_in, body, ordinal))
        if isinstance(answer, Evidence):
            return ordinal, None
        if answer is not None:
            return wanted, answer
    return wanted, None


async def _drain_one(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, ordinal: int, *, staying: int
) -> Evidence | NotDone:
    removal = pod_removal.live(ctx, component, body, ordinal, staying)
    with bound_contextvars(pod=removal.name):
        left = await scale_in.drain(removal)
        if not isinstance(left, Evidence):
            return left
        # a pod that the data plane does not know yet has nothing to drain, and the user may have just asked for it
        wanted = spec_or_wait(ctx, next_poll(ctx, component))
        if isinstance(wanted, Waiting):
            return wanted
        # read the claims again, as this reconcile has written to them
        await pod_removal.live(ctx, component, body, ordinal).defer_deleting()
        return left & wanted


async def _cancel_one(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, ordinal: int
) -> Evidence | NotDone | None:
    removal = pod_removal.live(ctx, component, body, ordinal)
    with bound_contextvars(pod=removal.name):
        return await scale_in.cancel(removal) if removal.begun else None


async def _attempt(decision: Decision[_T]) -> _T | Waiting | Failed:
    """The conclusion for one pod; an error becomes an outcome, so that the other pods continue."""
    try:
        return await decision
    except Conflict as error:
        return Waiting("Conflict", f"another client changed the object at the same time: {error}", retry_after=0.5)
    except (ApiError, TransportError, DataPlaneError) as error:
        return Failed(type(error).__name__, str(error))


def _joined(unfinished: Sequence[NotDone]) -> NotDone:
    """One outcome for several pods: the worst kind, with the messages of all outcomes of that kind."""
    for kind in (Refused, Failed, Waiting):
        if alike := [each for each in unfinished if isinstance(each, kind)]:
            break
    message = "; ".join(dict.fromkeys(each.message for each in alike))
    if isinstance(alike[0], Failed):
        return Failed(alike[0].reason, message)
    return type(alike[0])(alike[0].reason, message, first_retry(unfinished))
