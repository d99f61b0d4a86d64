"""The stage `pv_reclaim_policy`: volumes outlive their claims unless the user wants otherwise (lifecycle.md 11.3)."""

from structlog.contextvars import bound_contextvars

from apis.components import component_names
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUMES
from member.context import ReconcileContext
from member.labels import PVC_DEFER_DELETING
from member.observed.claims import Claim
from member.outcome import Done, Outcome
from meta.identity import of_volume
from meta.metadata import DesiredMetadata
from meta.reading import Volume, claims_of_cluster, retry_on_conflict, volume_of


def act(ctx: ReconcileContext) -> Outcome:
    """Give the volumes of the cluster the policy of its spec. Raises ApiError, TransportError."""
    spec = ctx.tc.spec
    if spec.paused:
        return Done("paused")
    if ctx.listers.persistent_volumes is None:
        return Done("no permission for PersistentVolumes")
    for claim in claims_of_cluster(ctx, component_names(lambda row: row.claims.reclaim_policy)):
        # what is left behind belongs to the PVC cleaner
        if spec.enable_pv_reclaim and PVC_DEFER_DELETING in claim.metadata.annotations:
            continue
        if not claim.decode_as(Claim).is_bound:
            continue
        volume = volume_of(ctx, claim)
        if volume is None:
            _report_missing(ctx, claim)
        elif spec.pv_reclaim_policy:
            set_policy(ctx, claim, volume, spec.pv_reclaim_policy)
    return Done()


def set_policy(ctx: ReconcileContext, claim: Object, volume: Object, policy: str) -> None:
    """Give the volume of a claim a reclaim policy unless it has it. Raises ApiError, TransportError."""
    labels = of_volume(claim)
    with bound_contextvars(claim=claim.metadata.name):
        retry_on_conflict(ctx, PERSISTENT_VOLUMES, volume, lambda there: _with_policy(ctx, there, policy, labels))


def _with_policy(ctx: ReconcileContext, volume: Object, policy: str, labels: DesiredMetadata) -> Object:
    """Labels go with the policy: they are what makes the cache show the volume from then on."""
    if volume.decode_as(Volume).spec.persistent_volume_reclaim_policy == policy:
        return volume
    name = volume.metadata.name
    metadata = {"name": name, "labels": dict(labels.labels), "annotations": dict(labels.annotations)}
    desired: Json = {"metadata": metadata, "spec": {"persistentVolumeReclaimPolicy": policy}}
    written = ctx.deps.applier.apply(PERSISTENT_VOLUMES, desired, volume)
    what = f"patch PersistentVolume {name} in TidbCluster {ctx.name} successful: reclaim policy {policy}"
    ctx.deps.recorder.event(ctx.owner, NORMAL, "SuccessfulPatch", what)
    return written


def _report_missing(ctx: ReconcileContext, claim: Object) -> None:
    """Say that data may be lost. Kubernetes then calls the claim Lost, so there is but one event."""
    volume, name = claim.decode_as(Claim).spec.volume_name, claim.metadata.name
    bound = f"PersistentVolumeClaim {name} is bound to PersistentVolume {volume}"
    what = f"{bound}, which does not exist or belongs to another claim"
    ctx.deps.recorder.event(ctx.owner, WARNING, "VolumeMissing", what)
