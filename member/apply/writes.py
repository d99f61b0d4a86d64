"""Writing the objects of a cluster, and the events about it (objects.md 2.3, 6.5, 11)."""

from collections.abc import Mapping

from kube.apply import is_ours
from kube.errors import AlreadyExists, ApiError
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import SERVICES, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from member.apply.last_applied import applied, stamped
from member.context import ReconcileContext
from member.objects.services import keep_allocated


class OwnerGone(Exception):
    """Raised instead of acting for a TidbCluster that, read live, is deleted or another one (F4)."""


def apply(
    ctx: ReconcileContext,
    resource: Resource,
    desired: Json,
    cached: Object | None,
    *,
    applied_before: Json | None = None,
) -> None:
    """Create the object, or patch what differs; a creation is told as an event, and so is its refusal.

    `cached` is None when the cache lacks it, which may mean that it is only unseen.
    Raises OwnerGone, ForeignOwner, ApiError, TransportError; TypeError for a StatefulSet.
    """
    if resource == STATEFUL_SETS:
        raise TypeError("a StatefulSet is written by member.apply.stateful_set, which asks for evidence")
    there = cached or create_or_find(ctx, resource, desired)
    if there is not None:
        ctx.deps.applier.apply(resource, desired, there, applied=applied_before)


def create_or_find(ctx: ReconcileContext, resource: Resource, desired: Json) -> Object | None:
    """Create the object, which is told as an event; what there is of its name, read live, if it was only unseen.

    Raises OwnerGone, ApiError, TransportError.
    """
    name, names, clock = desired["metadata"]["name"], ctx.taken_names, ctx.deps.clock
    if names.is_taken(resource, name):
        there = names.last_seen(resource, name, clock) or ctx.deps.client.find(resource, name, ctx.namespace)
        if there is not None:
            return _noted(ctx, resource, desired, there)
        names.note(resource, name, None, clock)
    try:
        _create(ctx, resource, desired)
    except AlreadyExists:
        return _noted(ctx, resource, desired, ctx.deps.client.get(resource, name, ctx.namespace))
    return None


def _noted(ctx: ReconcileContext, resource: Resource, desired: Json, there: Object) -> Object:
    """What has the name of a desired object; one of others is noted, as asking the API server again is no use."""
    name, clock = there.metadata.name, ctx.deps.clock
    if is_ours(desired, there):
        ctx.taken_names.note(resource, name, None, clock)
    elif ctx.taken_names.last_seen(resource, name, clock) is None:
        ctx.taken_names.note(resource, name, there, clock)
    return there


def apply_service(ctx: ReconcileContext, desired: Json) -> None:
    """Bring one Service to what is desired; ports and addresses that Kubernetes allocated stay."""
    cached = ctx.listers.services.get(ctx.namespace, desired["metadata"]["name"])
    live = cached.decode() if cached else None
    if live is not None:
        desired = keep_allocated(desired, live)
    before = _with_whole_selector(applied(live) or {}, live) if live is not None else None
    apply(ctx, SERVICES, stamped(desired, live), cached, applied_before=before)


def _with_whole_selector(before: Json, live: Json) -> Json:
    """What was applied before, as if the whole selector had been: with a key of others it selects no pod."""
    spec = before.get("spec") or {}
    return before | {"spec": spec | {"selector": live["spec"].get("selector") or {}}}


def _create(ctx: ReconcileContext, resource: Resource, desired: Json) -> None:
    require_owner(ctx)
    what = f"create {resource.kind} {desired['metadata']['name']} in TidbCluster {ctx.name}"
    record = ctx.deps.recorder.event
    try:
        ctx.deps.applier.create(resource, desired)
    except AlreadyExists:
        raise
    except ApiError as error:
        record(ctx.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
        raise
    record(ctx.owner, NORMAL, "SuccessfulCreate", f"{what} successful")


def annotate_owner(ctx: ReconcileContext, annotations: Mapping[str, str | None]) -> None:
    """Bring annotations of the TidbCluster to what is given, None removes; nothing else of it is written.

    The rest of the reconcile goes on with the TidbCluster as it is then. Raises Conflict, other ApiErrors,
    TransportError.
    """
    there = ctx.owner.metadata.annotations
    removed = {key: there[key] for key, value in annotations.items() if value is None and key in there}
    wanted = {key: value for key, value in annotations.items() if value is not None}
    if not removed and wanted.items() <= there.items():
        return
    meta = {"name": ctx.name, "namespace": ctx.namespace}
    ctx.owner = ctx.deps.applier.apply(
        TIDB_CLUSTERS,
        {"metadata": meta | {"annotations": wanted}},
        ctx.owner,
        applied={"metadata": {"annotations": removed}},
    )
    ctx.tc.metadata.annotations = dict(ctx.owner.metadata.annotations)


def record_deletion(ctx: ReconcileContext, resource: Resource, name: str) -> None:
    """Tell as an event that an object was deleted (lifecycle.md 15)."""
    what = f"delete {resource.kind} {name} in TidbCluster {ctx.name} successful"
    ctx.deps.recorder.event(ctx.owner, NORMAL, "SuccessfulDelete", what)


def require_owner(ctx: ReconcileContext) -> None:
    """Look live, once in a reconcile, whether there still is a cluster to create or delete something for (F4).

    Raises OwnerGone, ApiError, TransportError.
    """
    if not ctx.owner_lives:
        live_owner(ctx)
        ctx.owner_lives = True


def live_owner(ctx: ReconcileContext) -> Object:
    """The TidbCluster as the API server has it now (F4).

    Raises OwnerGone when it is deleted or another one, ApiError, TransportError.
    """
    meta = ctx.owner.metadata
    live = ctx.deps.client.find(TIDB_CLUSTERS, meta.name, meta.namespace)
    if live is None:
        raise OwnerGone("the TidbCluster was deleted; waiting for the cache to show that")
    if live.metadata.uid != meta.uid or live.metadata.deletion_timestamp:
        raise OwnerGone("the TidbCluster is being deleted or was recreated; waiting for the cache to show that")
    return live
