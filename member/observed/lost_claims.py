"""Volume claims that another client has deleted while a pod uses them: the volume goes with the pod (R27).

A deletion cannot be reverted. The pod has its data as long as it runs, so the operator does not restart the pod for
another reason.
"""

from collections.abc import Iterable

from apis import pod_commands
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.context import ClusterContext
from member.observed.claims import claim_names, claims_of
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Refused, Waiting


def volume_being_deleted(ctx: ClusterContext, component: str) -> Refused | Waiting | None:
    """Why the operator restarts no pod of a component: a Ready pod would lose its volume. None if none would."""
    pods = (pod for pod in pods_of(ctx, component) if pod.decode_as(Pod).is_ready)
    return next((lost for pod in pods if (lost := _lost(pod, claims_of(ctx, pod)))), None)


def would_lose_volume(ctx: ClusterContext, pod: Object) -> Refused | Waiting | None:
    """Like `volume_being_deleted`, for one pod, with a live read of its claims. Raises ApiError, TransportError."""
    found = (ctx.deps.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace) for name in claim_names(pod).values())
    return _lost(pod, filter(None, found))


def _lost(pod: Object, claims: Iterable[Object]) -> Refused | Waiting | None:
    claim = next((each for each in claims if each.metadata.deletion_timestamp), None)
    if claim is None or pod.metadata.deletion_timestamp:
        return None
    name = pod.metadata.name
    if pod_commands.replaces_volumes(pod.metadata.annotations):
        return Waiting("ReplacingVolume", f"waiting for pod {name}, whose volumes are replaced by command")
    what = f"PersistentVolumeClaim {claim.metadata.name} is being deleted; its data is lost when pod {name} ends"
    way_out = f"annotate the pod with {pod_commands.REPLACE_VOLUME}=true, which moves the data away first"
    return Refused("VolumeBeingDeleted", f"{what}, so no Ready pod beside it is restarted; {way_out}")
