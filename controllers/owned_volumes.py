"""The volumes of an object of a simple kind, found by the labels of its claims (other-resources.md 1).

Claims and volumes have no owner, so they outlive the object. With the reclaim policy a volume also gets the labels of
its claim, by which the operator's cache selects volumes.
"""

from collections.abc import Mapping
from typing import Any

from controllers.simple_kind import Reconcile
from kube.events import NORMAL
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from member.observed.claims import Claim
from member.outcome import Done, Outcome
from meta.identity import of_volume
from meta.reading import Volume, is_for


def keep_volumes(ctx: Reconcile[Any], labels: Mapping[str, str], policy: str) -> Outcome:
    """Set the reclaim policy of the volumes whose claims have certain labels.

    Does nothing without the permission for volumes. Raises ApiError, TransportError.
    """
    if PERSISTENT_VOLUMES not in ctx.owned.caches:
        return Done("no permission for PersistentVolumes")
    for claim in ctx.lister(PERSISTENT_VOLUME_CLAIMS).list(ctx.namespace, labels):
        if claim.decode_as(Claim).is_bound and not claim.metadata.deletion_timestamp:
            _keep(ctx, claim, policy)
    return Done()


def _keep(ctx: Reconcile[Any], claim: Object, policy: str) -> None:
    name = claim.decode_as(Claim).spec.volume_name
    cached = ctx.lister(PERSISTENT_VOLUMES).get("", name)
    volume = cached or ctx.owned.runtime.client.find(PERSISTENT_VOLUMES, name)
    if volume is None or not is_for(volume, claim) or volume.metadata.deletion_timestamp:
        return
    has = volume.decode_as(Volume).spec.persistent_volume_reclaim_policy
    if has == policy and of_volume(claim).matches(volume):
        return
    written = ctx.owned.runtime.applier.apply(PERSISTENT_VOLUMES, _desired(claim, name, policy), volume)
    if written is not volume and has != policy:
        what = (
            f"patch PersistentVolume {name} in {ctx.owned.resource.kind} {ctx.name} successful: reclaim policy {policy}"
        )
        ctx.owned.runtime.recorder.event(ctx.owner, NORMAL, "SuccessfulPatch", what)


def _desired(claim: Object, name: str, policy: str) -> Json:
    labels = of_volume(claim)
    metadata = {"name": name, "labels": dict(labels.labels), "annotations": dict(labels.annotations)}
    return {"metadata": metadata, "spec": {"persistentVolumeReclaimPolicy": policy}}
