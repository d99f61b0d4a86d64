"""Shrinking a component, pod by pod from the highest ordinal down (lifecycle.md 8.1, 8.3, 8.5), and not after all.

A pod goes when nothing of it is left in the data plane; then its claims are marked, and the StatefulSet gets smaller.
Several may leave at a time. Those that are done go even while others take longer or fail (F37), as far as they are the
highest: a StatefulSet removes from the top.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from apis.tidbcluster import TidbCluster
from dataplane.errors import DataPlaneError
from kube.errors import ApiError, Conflict
from kube.objects import Json
from member import departure
from member.departure import Departure
from member.outcome import Failed, Refused, Waiting
from member.proofs import Proof
from member.round import Round
from ports.transport import TransportError

Unfinished: TypeAlias = Waiting | Refused | Failed

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """How a component gives up pods.

    `limit` pods at a time. `leave` takes a pod out of the data plane step by step; its Proof says that nothing of it is
    left there, so that the pod can go. `stay` takes such a step back when the pod is wanted again: None when all is
    as before, and a Proof when it is too late for that.
    """

    limit: Callable[[TidbCluster], int]
    leave: Callable[[Departure], Proof | Unfinished]
    stay: Callable[[Departure], Proof | Unfinished | None]


def shrink(
    round_: Round, component: str, scale_in: ScaleIn, body: Json, wanted: int
) -> tuple[int, Waiting | Refused | Failed]:
    """How many replicas the StatefulSet gets in this round, and what it waits for to get fewer."""
    there = replicas = body["spec"]["replicas"]
    chosen = range(there - 1, wanted - 1, -1)[: scale_in.limit(round_.tc)]
    unfinished: list[Unfinished] = []
    for ordinal in chosen:
        left = _attempt(partial(_leaving, round_, component, scale_in, body, ordinal))
        if isinstance(left, Proof):
            replicas = replicas if unfinished else ordinal
        else:
            unfinished.append(left)
    going = Waiting("ScalingIn", f"shrinking from {there} to {wanted} pods")
    return replicas, _joined(unfinished) if unfinished else going


def staying(
    round_: Round, component: str, scale_in: ScaleIn, body: Json, wanted: int
) -> tuple[int, Waiting | Refused | Failed | None]:
    """How many of the `wanted` lowest pods can stay, after a scale-in of them that was begun is taken back (F36).

    The first one that has left the data plane already has to go, with all above it: its data can't come back.
    """
    for ordinal in range(wanted):
        # marks in the cache may be those of a claim that was deleted since
        if not departure.cached(round_, component, body, ordinal).begun:
            continue
        answer = _attempt(partial(_staying, round_, component, scale_in, body, ordinal))
        if isinstance(answer, Proof):
            return ordinal, None
        if answer is not None:
            return wanted, answer
    return wanted, None


def _leaving(round_: Round, component: str, scale_in: ScaleIn, body: Json, ordinal: int) -> Proof | Unfinished:
    leaving = departure.live(round_, component, body, ordinal)
    left = scale_in.leave(leaving)
    if isinstance(left, Proof):
        # claims that were written in this round are read again
        departure.live(round_, component, body, ordinal).defer_deleting()
    return left


def _staying(round_: Round, component: str, scale_in: ScaleIn, body: Json, ordinal: int) -> Proof | Unfinished | None:
    pod = departure.live(round_, component, body, ordinal)
    return scale_in.stay(pod) if pod.begun else None


def _attempt(act: Callable[[], _T]) -> _T | Waiting | Failed:
    """What became of one pod; what the outside refused is an answer, so that the others go on."""
    try:
        return act()
    except Conflict as error:
        return Waiting("Conflict", f"something else wrote at the same moment: {error}", retry_after=0.5)
    except (ApiError, TransportError, DataPlaneError) as error:
        return Failed(type(error).__name__, str(error))


def _joined(unfinished: Sequence[Unfinished]) -> Unfinished:
    """One outcome for several pods: the worst kind, and what all of that kind say."""
    for kind in (Refused, Failed, Waiting):
        if alike := [each for each in unfinished if isinstance(each, kind)]:
            break
    message = "; ".join(dict.fromkeys(each.message for each in alike))
    if isinstance(alike[0], Failed):
        return Failed(alike[0].reason, message)
    delays = [each.retry_after for each in unfinished if not isinstance(each, Failed) and each.retry_after]
    return type(alike[0])(alike[0].reason, message, min(delays, default=None))
