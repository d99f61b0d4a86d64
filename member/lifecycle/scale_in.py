"""Shrinking a component, pod by pod from the highest ordinal down (lifecycle.md 8.1, 8.3, 8.5), and not after all.

No pod leaves unless all that are to leave can: `PodRemoval.staying` tells the drain of each which pods will be left. A
pod goes when nothing of it is left in the data plane, and the cluster, read live, asks for fewer; then its claims are
marked, and the StatefulSet gets smaller. Several may leave at a time. Those that are done go even while others take
longer or fail (F37), as far as they are the highest: a StatefulSet removes from the top.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from structlog.contextvars import bound_contextvars

from apis.accessor import Component
from apis.accessor import component as component_of
from dataplane.errors import DataPlaneError
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

    `limit` pods at a time. `drain` takes a pod out of the data plane step by step; its Evidence says that nothing of it
    is left there, so that the pod can go. `cancel` takes such a step back when the pod is wanted again: None when all
    is as before, and an Evidence when it is too late for that.
    """

    limit: Callable[[Component], int]
    drain: Callable[[PodRemoval], Evidence | NotDone]
    cancel: Callable[[PodRemoval], Evidence | NotDone | None]


def next_lower_replicas(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, wanted: int
) -> tuple[Replicas, NotDone]:
    """How many replicas the StatefulSet gets in this reconcile, and what it waits for to get fewer."""
    there = body["spec"]["replicas"]
    chosen = range(there - 1, wanted - 1, -1)[: scale_in.limit(component_of(ctx.tc, component))]
    gone: list[Evidence] = []
    unfinished: list[NotDone] = []
    for ordinal in chosen:
        left = _attempt(partial(_drain_one, ctx, component, scale_in, body, ordinal, staying=wanted))
        if not isinstance(left, Evidence):
            unfinished.append(left)
        elif not unfinished:
            gone.append(left)
    going = Waiting("ScalingIn", f"scaling in from {there} to {wanted} pods")
    return Replicas.lowered(body, gone), _joined(unfinished) if unfinished else going


def cancel_removals(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, wanted: int
) -> tuple[int, NotDone | None]:
    """How many of the `wanted` lowest pods can stay, after a scale-in of them that was begun is taken back (F36).

    The first one that has left the data plane already has to go, with all above it: its data can't come back.
    """
    for ordinal in range(wanted):
        # marks in the cache may be those of a claim that was deleted since
        if not pod_removal.cached(ctx, component, body, ordinal).begun:
            continue
        answer = _attempt(partial(_cancel_one, ctx, component, scale_in, body, ordinal))
        if isinstance(answer, Evidence):
            return ordinal, None
        if answer is not None:
            return wanted, answer
    return wanted, None


def _drain_one(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, ordinal: int, *, staying: int
) -> Evidence | NotDone:
    removal = pod_removal.live(ctx, component, body, ordinal, staying)
    with bound_contextvars(pod=removal.name):
        left = scale_in.drain(removal)
        if not isinstance(left, Evidence):
            return left
        # a pod that is new to the data plane has nothing there to leave, and somebody may just have asked for it
        wanted = spec_or_wait(ctx, next_poll(ctx, component))
        if isinstance(wanted, Waiting):
            return wanted
        # claims that were written in this reconcile are read again
        pod_removal.live(ctx, component, body, ordinal).defer_deleting()
        return left & wanted


def _cancel_one(
    ctx: ClusterContext, component: str, scale_in: ScaleIn, body: Json, ordinal: int
) -> Evidence | NotDone | None:
    removal = pod_removal.live(ctx, component, body, ordinal)
    with bound_contextvars(pod=removal.name):
        return scale_in.cancel(removal) if removal.begun else None


def _attempt(act: Callable[[], _T]) -> _T | Waiting | Failed:
    """What became of one pod; what the outside refused is an answer, so that the others go on."""
    try:
        return act()
    except Conflict as error:
        return Waiting("Conflict", f"another client changed the object at the same time: {error}", retry_after=0.5)
    except (ApiError, TransportError, DataPlaneError) as error:
        return Failed(type(error).__name__, str(error))


def _joined(unfinished: Sequence[NotDone]) -> NotDone:
    """One outcome for several pods: the worst kind, and what all of that kind say."""
    for kind in (Refused, Failed, Waiting):
        if alike := [each for each in unfinished if isinstance(each, kind)]:
            break
    message = "; ".join(dict.fromkeys(each.message for each in alike))
    if isinstance(alike[0], Failed):
        return Failed(alike[0].reason, message)
    return type(alike[0])(alike[0].reason, message, first_retry(unfinished))
