"""Growing a component, pod by pod (lifecycle.md 8.1, 8.3, 8.4).

A further pod starts only when the ones before it exist, and never on the data of a member that was removed (F32).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apis.ordinals import ordinals
from apis.tidbcluster import TidbCluster
from kube.errors import NotFound
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.labels import PVC_DEFER_DELETING
from member.naming import pod_name, pvc_name
from member.outcome import Refused, Waiting
from member.round import Round

_LOOK_AGAIN = 10.0
"""Seconds until the next look at a volume claim in the way: no event tells that it is gone."""


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """How a component grows.

    `limit` pods at a time; `allowed` says what must be well first; `is_member` whether a pod name is known to PD, so
    that its old volumes belong to it.
    """

    limit: Callable[[TidbCluster], int]
    allowed: Callable[[Round], Waiting | None]
    is_member: Callable[[Round, str], bool]


def next_replicas(
    round_: Round, component: str, scale_out: ScaleOut, body: Json, desired: Json
) -> tuple[int, Waiting | Refused | None]:
    """How many replicas the StatefulSet gets in this round, and what it waits for to get more.

    Raises ApiError, TransportError.
    """
    there, wanted = body["spec"]["replicas"], desired["spec"]["replicas"]
    if wanted <= there:
        return there, None
    if (body.get("status") or {}).get("replicas") != there:
        return there, Waiting("ScalingOut", f"waiting until the {there} pods asked for before exist")
    if waiting := scale_out.allowed(round_):
        return there, waiting
    step = min(wanted, there + scale_out.limit(round_.tc))
    for ordinal in ordinals(step)[there:]:
        if blocked := _leftover(round_, component, scale_out, body, pod_name(round_.tc, component, ordinal)):
            return ordinal, blocked
    return step, Waiting("ScalingOut", f"growing from {there} to {wanted} pods")


def _leftover(round_: Round, component: str, scale_out: ScaleOut, body: Json, pod: str) -> Waiting | Refused | None:
    """Why a pod must not start: a live volume claim of its name holds the data of a removed member."""
    for claim in _existing_claims(round_, body["spec"].get("volumeClaimTemplates") or (), pod):
        name = claim.metadata.name
        if claim.metadata.deletion_timestamp:
            return Waiting("VolumeInTheWay", f"waiting until PersistentVolumeClaim {name} is gone", _LOOK_AGAIN)
        if PVC_DEFER_DELETING in claim.metadata.annotations:
            return Refused(
                "NotYetSupported",
                f"PersistentVolumeClaim {name} holds the data of a removed {component} member and this version can't "
                f"delete it; delete it yourself to let {pod} start",
            )
        if not scale_out.is_member(round_, pod):
            return Waiting(
                "VolumeInTheWay",
                f"PersistentVolumeClaim {name} exists though {pod} is no {component} member; look at its data, then "
                f"delete it to let {pod} start",
                _LOOK_AGAIN,
            )
    return None


def _existing_claims(round_: Round, templates: Sequence[Json], pod: str) -> list[Object]:
    """The claims of a pod, read live: what the cache lacks may only be unseen (F1)."""
    found = []
    for template in templates:
        name = pvc_name(template["metadata"]["name"], pod)
        try:
            found.append(round_.doors.client.get(PERSISTENT_VOLUME_CLAIMS, name, round_.namespace))
        except NotFound:
            continue
    return found
