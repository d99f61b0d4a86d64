"""The stage `pv_reclaim_policy`: volumes outlive their claims unless the user decides otherwise (lifecycle.md 11.3).

Together with the policy a volume gets the labels of its claim (11.4), by which the cache then finds it. For a new claim
the stage waits until the claim has its ids, so that one patch suffices. It also writes labels while the cluster is
paused.
"""

from functools import cache

from structlog.contextvars import bound_contextvars

from apis.components import component_type, component_types
from kube.actions import Apply, Emit, Merge
from kube.errors import NotFound
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUMES
from member.context import ClusterContext
from member.evidence import spec_confirmed
from member.labels import COMPONENT, PVC_DEFER_DELETING
from member.observed.claims import Claim
from member.outcome import Done, Outcome
from meta.apart import conclude_all
from meta.identity import is_labelled_within, of_volume
from meta.reading import (
    Volume,
    cached_volume,
    claims_of_cluster,
    is_for,
    is_named_after,
    retry_on_conflict,
    volume_of,
)

_DELETE = "Delete"


async def act(ctx: ClusterContext) -> Outcome:
    """Set the reclaim policy of the spec and the labels of the cluster's volumes. Raises ApiError, TransportError."""
    if ctx.listers.persistent_volumes is None:
        return Done("no permission for PersistentVolumes")
    now, times = ctx.deps.clock.wall, list[float]()
    rows = component_types(ctx.tc.kind)
    known = {row.name for row in rows if row.claims.labelled or row.claims.reclaim_policy}
    is_confirmed = cache(lambda: spec_confirmed(ctx) is not None)

    async def look(claim: Object) -> None:
        if not claim.decode_as(Claim).is_bound or claim.metadata.deletion_timestamp:
            return
        if time := is_labelled_within(claim, now):
            times.append(time)
        else:
            policy = _policy(ctx, claim)
            # the user may have withdrawn this policy, and may delete the claim before the cache shows that
            is_known = policy != _DELETE or _has(ctx, claim, policy) or is_confirmed()
            await _keep(ctx, claim, policy if is_known else "")

    await conclude_all(look(claim) for claim in claims_of_cluster(ctx, known))
    return Done(retry_after=min(times, default=None))


async def _keep(ctx: ClusterContext, claim: Object, policy: str) -> None:
    """Set the labels of a claim's volume and, unless it is empty, the policy.

    A volume missing from the cache has no labels yet. Most volumes' names identify their claim, so they need not be
    read first.
    """
    name = claim.decode_as(Claim).spec.volume_name
    cached = cached_volume(ctx, name)
    if cached is None and is_named_after(name, claim):
        await _introduce(ctx, claim, name, policy)
    elif volume := (cached if cached and is_for(cached, claim) else volume_of(ctx, claim)):
        if not _is_kept(claim, volume, policy):
            await set_policy(ctx, claim, volume, policy)
    else:
        await _report_missing(ctx, claim)


def _has(ctx: ClusterContext, claim: Object, policy: str) -> bool:
    """True if the cache shows the volume of a claim with this policy."""
    volume = cached_volume(ctx, claim.decode_as(Claim).spec.volume_name)
    return volume is not None and volume.decode_as(Volume).spec.persistent_volume_reclaim_policy == policy


async def _introduce(ctx: ClusterContext, claim: Object, name: str, policy: str) -> None:
    with bound_contextvars(claim=claim.metadata.name):
        try:
            await Merge(PERSISTENT_VOLUMES, _desired(claim, name, policy))
        except NotFound:
            await _report_missing(ctx, claim)
        else:
            await _tell(ctx, name, policy)


def _policy(ctx: ClusterContext, claim: Object) -> str:
    """The policy for the volume of a claim; empty to leave it unchanged."""
    spec, meta = ctx.tc.spec, claim.metadata
    if spec.paused or not component_type(meta.labels[COMPONENT]).claims.reclaim_policy:
        return ""
    # a claim that was left behind belongs to the PVC cleaner
    left = spec.enable_pv_reclaim and PVC_DEFER_DELETING in meta.annotations
    return "" if left else spec.pv_reclaim_policy or ""


async def set_policy(ctx: ClusterContext, claim: Object, volume: Object, policy: str) -> None:
    """Set the labels of a claim's volume and, unless it is empty, the policy. Raises ApiError, TransportError."""
    with bound_contextvars(claim=claim.metadata.name):
        await retry_on_conflict(ctx, PERSISTENT_VOLUMES, volume, lambda there: _written(ctx, claim, there, policy))


async def _written(ctx: ClusterContext, claim: Object, volume: Object, policy: str) -> Object:
    meta, has = volume.metadata, volume.decode_as(Volume).spec.persistent_volume_reclaim_policy
    if _is_kept(claim, volume, policy):
        return volume
    written = await Apply(PERSISTENT_VOLUMES, _desired(claim, meta.name, policy), volume)
    if written is not volume and has != policy:
        await _tell(ctx, meta.name, policy)
    return written


def _is_kept(claim: Object, volume: Object, policy: str) -> bool:
    """True if nothing is to be written: the volume has its labels and the policy, or it is being deleted."""
    has = volume.decode_as(Volume).spec.persistent_volume_reclaim_policy
    return bool(volume.metadata.deletion_timestamp) or (policy in ("", has) and of_volume(claim).matches(volume))


async def _tell(ctx: ClusterContext, volume: str, policy: str) -> None:
    if policy:
        what = f"patch PersistentVolume {volume} in {ctx.tc.kind} {ctx.name} successful: reclaim policy {policy}"
        await Emit(ctx.owner, NORMAL, "SuccessfulPatch", what)


def _desired(claim: Object, name: str, policy: str) -> Json:
    labels = of_volume(claim)
    metadata = {"name": name, "labels": dict(labels.labels), "annotations": dict(labels.annotations)}
    return {"metadata": metadata} | ({"spec": {"persistentVolumeReclaimPolicy": policy}} if policy else {})


async def _report_missing(ctx: ClusterContext, claim: Object) -> None:
    """Report that data may be lost. Kubernetes then calls the claim Lost, so there is only one event."""
    volume, name = claim.decode_as(Claim).spec.volume_name, claim.metadata.name
    bound = f"PersistentVolumeClaim {name} is bound to PersistentVolume {volume}"
    what = f"{bound}, which does not exist or belongs to another claim"
    await Emit(ctx.owner, WARNING, "VolumeMissing", what)
