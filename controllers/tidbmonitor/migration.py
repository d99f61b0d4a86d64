"""The stage `migration`: it replaces the Deployment of an operator before v1.2 (other-resources.md 3.9).

The StatefulSet takes over the volume. The operator deletes the claim only after it has made sure that the volume stays,
and keeps its name in the status until the new claim can only bind to it. After a crash, the stage continues.
"""

from apis.monitors import DeploymentStorageStatus, TidbMonitor
from controllers.owned_deletion import delete_if
from controllers.simple_kind import Reconcile
from kube.objects import Json, Object
from kube.resources import DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from member.monitor.naming import VOLUME, monitor_name
from member.outcome import Done, Outcome, Refused, Waiting

_LOOK_AGAIN = 2.0


def migrate(ctx: Reconcile[TidbMonitor]) -> Outcome:
    """Delete the Deployment, then hand its volume over. Raises Conflict, other ApiErrors, TransportError."""
    name = monitor_name(ctx.model)
    cached = ctx.cached(DEPLOYMENTS, name)
    if cached is not None and ctx.controls(cached):
        delete_if(ctx.owned.runtime.client, DEPLOYMENTS, name, ctx.namespace, ctx.controls)
        return Waiting("Migrating", f"waiting until Deployment {name} of an older operator is gone", _LOOK_AGAIN)
    return _hand_over(ctx, name) if ctx.model.spec.persistent else Done()


def _hand_over(ctx: Reconcile[TidbMonitor], name: str) -> Outcome:
    """Delete the claim of the Deployment and reserve its volume for the first claim of the StatefulSet."""
    known = ctx.model.status.deployment_storage_status
    volume = known.pv_name if known else ""
    claim = ctx.cached(PERSISTENT_VOLUME_CLAIMS, name)
    if claim is not None and not claim.metadata.deletion_timestamp and _volume_of(claim) != volume:
        return _note(ctx, claim)
    if claim is not None:
        return _release(ctx, claim)
    return _rebind(ctx, volume, name) if volume else Done()


def _volume_of(claim: Object) -> str:
    return str(claim.decode()["spec"].get("volumeName") or "")


def _note(ctx: Reconcile[TidbMonitor], claim: Object) -> Outcome:
    """Note the volume in the status; refuse if it would be deleted with its claim."""
    volume = _volume_of(claim)
    live = ctx.owned.runtime.client.find(PERSISTENT_VOLUMES, volume) if volume else None
    if live is None:
        return Done()
    if live.decode()["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
        what = f"PersistentVolume {volume} of the older Deployment would be deleted with its claim"
        return Refused("VolumeWouldGo", f"{what}; set its reclaim policy to Retain to have it taken over", 30.0)
    ctx.model.status.deployment_storage_status = DeploymentStorageStatus(pv_name=volume)
    return Waiting("Migrating", f"noting PersistentVolume {volume} before its claim is deleted", _LOOK_AGAIN)


def _release(ctx: Reconcile[TidbMonitor], claim: Object) -> Outcome:
    """Delete the claim, after the stored status has the name of its volume."""
    uid = claim.metadata.uid
    client, name = ctx.owned.runtime.client, claim.metadata.name
    delete_if(client, PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace, lambda live: live.metadata.uid == uid)
    return Waiting("Migrating", f"waiting until PersistentVolumeClaim {name} is gone", _LOOK_AGAIN)


def _rebind(ctx: Reconcile[TidbMonitor], volume: str, name: str) -> Outcome:
    """Reserve the volume for the claim of the first pod of the StatefulSet."""
    client, applier = ctx.owned.runtime.client, ctx.owned.runtime.applier
    live = client.find(PERSISTENT_VOLUMES, volume)
    if live is not None:
        wanted = {"namespace": ctx.namespace, "name": f"{VOLUME}-{name}-0"}
        there: Json = live.decode()["spec"].get("claimRef") or {}
        if {key: there.get(key) for key in wanted} != wanted:
            body = {"metadata": {"name": volume}, "spec": {"claimRef": wanted}}
            applier.apply(PERSISTENT_VOLUMES, body, live, applied={"spec": {"claimRef": there}})
    ctx.model.status.deployment_storage_status = None
    return Done()
