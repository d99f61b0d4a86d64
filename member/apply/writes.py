"""Writes of a cluster's objects, and the events about them (objects.md 2.3, 6.5, 11)."""

from collections.abc import Mapping

from kube.actions import Apply, Create, Emit
from kube.apply import OwnerChanged, OwnerGone, require_ours
from kube.errors import AlreadyExists, ApiError
from kube.events import NORMAL, WARNING
from kube.objects import Json, Object
from kube.resources import SERVICES, STATEFUL_SETS, Resource
from member.apply.last_applied import applied, stamped
from member.context import ClusterContext
from member.labels import base_labels, object_meta
from member.objects.services import keep_allocated


async def apply(
    ctx: ClusterContext,
    resource: Resource,
    desired: Json,
    cached: Object | None,
    *,
    applied_before: Json | None = None,
) -> None:
    """Create the object, or patch the differences; emits an event for a creation and for its failure.

    `cached` is None if the cache lacks the object, which may exist nevertheless. Raises OwnerGone, OwnerChanged,
    ForeignOwner, ApiError, TransportError; TypeError for a StatefulSet.
    """
    if resource == STATEFUL_SETS:
        raise TypeError("a StatefulSet is written by member.apply.stateful_set, which asks for evidence")
    if cached is not None:
        if not ctx.memory.settled.holds(resource, cached, desired):
            await _write(ctx, resource, cached, desired, wish=desired, applied_before=applied_before)
    elif (unseen := await create_or_find(ctx, resource, desired)) is not None:
        await write_unseen(ctx, resource, desired, unseen, applied_before)


async def create_or_find(ctx: ClusterContext, resource: Resource, desired: Json) -> Object | None:
    """Create the object and emit an event. Returns None, or an existing one, read live, if the cache only lacked it.

    An object that was created or found a moment ago is neither created nor read again, though no cache shows it yet.
    Raises OwnerGone, ApiError, TransportError.
    """
    there, made = await make_or_find(ctx, resource, desired)
    return None if made else there


async def make_or_find(ctx: ClusterContext, resource: Resource, desired: Json) -> tuple[Object, bool]:
    """Like `create_or_find`: the object, and True if this call created it."""
    name = desired["metadata"]["name"]
    return await ctx.memory.taken_names.make_or_find(
        resource,
        name,
        ctx.deps.clock,
        make=lambda: _create(ctx, resource, desired),
        find=lambda: ctx.deps.client.find(resource, name, ctx.namespace),
    )


async def write_unseen(
    ctx: ClusterContext, resource: Resource, desired: Json, there: Object, applied_before: Json | None = None
) -> None:
    """Patch the differences in an object that no cache shows. Raises ForeignOwner, ApiError, TransportError."""
    await ctx.memory.taken_names.write(resource, desired, there, ctx.deps.clock, applied_before)


async def apply_service(ctx: ClusterContext, desired: Json) -> None:
    """Create or patch a Service; ports and addresses that Kubernetes has allocated stay."""
    cached = ctx.listers.services.get(ctx.namespace, desired["metadata"]["name"])
    if cached is None:
        await apply(ctx, SERVICES, stamped(desired), None)
    elif not ctx.memory.settled.holds(SERVICES, cached, desired):
        live = cached.decode()
        written = stamped(keep_allocated(desired, live), live)
        before = _with_live_selector(applied(live) or {}, live)
        await _write(ctx, SERVICES, cached, written, wish=desired, applied_before=before)


async def _write(
    ctx: ClusterContext, resource: Resource, cached: Object, desired: Json, *, wish: Json, applied_before: Json | None
) -> None:
    """Patch the differences in a cached object; `desired` is derived from the `wish` and the object."""
    ctx.memory.taken_names.forget(resource, cached.metadata.name)
    applier = ctx.deps.applier
    if await Apply(resource, desired, cached, applied=applied_before) is cached and not applier.is_contested(cached):
        ctx.memory.settled.note(resource, cached, wish)


def _with_live_selector(before: Json, live: Json) -> Json:
    """The last applied state with the whole live selector, so that foreign keys go: with one, no pod matches."""
    spec = before.get("spec") or {}
    return before | {"spec": spec | {"selector": live["spec"].get("selector") or {}}}


async def _create(ctx: ClusterContext, resource: Resource, desired: Json) -> Object:
    require_owner(ctx)
    what = f"create {resource.kind} {desired['metadata']['name']} in {ctx.tc.kind} {ctx.name}"
    try:
        created = await Create(resource, desired)
    except AlreadyExists:
        raise
    except ApiError as error:
        await Emit(ctx.owner, WARNING, "FailedCreate", f"{what} failed error: {error.message}")
        raise
    await Emit(ctx.owner, NORMAL, "SuccessfulCreate", f"{what} successful")
    return created


async def annotate_owner(ctx: ClusterContext, annotations: Mapping[str, str | None]) -> None:
    """Set annotations of the cluster, or remove those with None; writes nothing else of it.

    The rest of the reconcile uses the cluster that the API server returns. Raises Conflict, other ApiErrors,
    TransportError.
    """
    there = ctx.owner.metadata.annotations
    removed = {key: there[key] for key, value in annotations.items() if value is None and key in there}
    wanted = {key: value for key, value in annotations.items() if value is not None}
    if not removed and wanted.items() <= there.items():
        return
    meta = {"name": ctx.name, "namespace": ctx.namespace}
    ctx.owner = await Apply(
        ctx.resource,
        {"metadata": meta | {"annotations": wanted}},
        ctx.owner,
        applied={"metadata": {"annotations": removed}},
    )
    ctx.tc.metadata.annotations = dict(ctx.owner.metadata.annotations)


async def record_deletion(ctx: ClusterContext, resource: Resource, name: str) -> None:
    """Emit an event for the deletion of an object (lifecycle.md 15)."""
    what = f"delete {resource.kind} {name} in {ctx.tc.kind} {ctx.name} successful"
    await Emit(ctx.owner, NORMAL, "SuccessfulDelete", what)


def require_owner(ctx: ClusterContext) -> None:
    """Confirm live, once per reconcile, that the cluster exists before objects are created or deleted for it (F4).

    Its spec must be the one that this reconcile decides upon (F5). Otherwise pods would start in a cluster that the
    user has just suspended, or claims would get a storage class that the user has just replaced. Raises OwnerGone,
    OwnerChanged, ApiError, TransportError.
    """
    if ctx.owner_lives:
        return
    live = live_owner(ctx)
    if live.metadata.resource_version != ctx.owner.metadata.resource_version and _spec(live) != _spec(ctx.owner):
        raise OwnerChanged(f"waiting for the operator's cache to show the current {ctx.tc.kind}")
    ctx.owner_lives = True


def _spec(owner: Object) -> Json:
    return owner.decode().get("spec") or {}


def live_owner(ctx: ClusterContext) -> Object:
    """Read the cluster live (F4).

    Raises OwnerGone if it was deleted or recreated, ApiError, TransportError.
    """
    meta = ctx.owner.metadata
    live = ctx.deps.client.find(ctx.resource, meta.name, meta.namespace)
    if live is None:
        raise OwnerGone(f"the {ctx.tc.kind} was deleted; waiting for the operator's cache to show that")
    if live.metadata.uid != meta.uid or live.metadata.deletion_timestamp:
        raise OwnerGone(
            f"the {ctx.tc.kind} is being deleted or was recreated; waiting for the operator's cache to show that"
        )
    return live


def require_own(ctx: ClusterContext, resource: Resource, component: str, live: Object) -> None:
    """Raise ForeignOwner if an object with a component's name does not belong to the cluster."""
    require_ours(resource, {"metadata": object_meta(ctx.tc, live.metadata.name, base_labels(ctx.tc, component))}, live)
