"""Rights in all namespaces, of monitors that are clusterScoped (other-resources.md 3.2, 3.4).

A cluster-scoped object cannot have an owner in a namespace: name and labels identify it, and the operator deletes it
itself. The name alone is ambiguous: `basic` in `tidb-prod` and `prod-basic` in `tidb` yield the same name.
"""

from collections.abc import Iterable
from functools import partial

from msgspec import structs

from apis.consent import FLAG, Permission
from apis.monitors import TidbMonitor
from controllers.consent import marked, marks, policy
from controllers.owned_deletion import delete_if
from controllers.simple_kind import OwnedObjects, Reconcile
from kube.client import Client
from kube.errors import Forbidden
from kube.objects import Json, Object
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, TIDB_MONITORS, Resource
from member.labels import INSTANCE, MANAGED_BY, TIDB_OPERATOR
from member.monitor.naming import FINALIZER, Target, cluster_role_name, monitor_name
from member.outcome import Done, Outcome, Refused, Waiting

_LOOK_AGAIN = 30.0
"""Seconds until the operator reads bindings again: it does not watch those that users create."""

OF_ALL_NAMESPACES = (CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES)
"""The cluster-scoped resources, in the order of their deletion."""


def refuse_cluster_scoped(ctx: Reconcile[TidbMonitor]) -> list[str]:
    """The message that the administrator does not permit rights in all namespaces, in a list; else an empty list.

    The reconcile continues as if it were not clusterScoped, and granted rights are removed. What v1.6 made stays.
    Raises Conflict, other ApiErrors, TransportError.
    """
    bindings = ctx.owned.caches.get(CLUSTER_ROLE_BINDINGS)
    if not ctx.model.spec.cluster_scoped or bindings is None or _permitted(ctx) is not Permission.NONE:
        return []
    there = bindings.get("", cluster_role_name(ctx.namespace, ctx.name))
    if there is None or not _is_of(ctx.name, there) or marks(there):
        ctx.model = structs.replace(ctx.model, spec=structs.replace(ctx.model.spec, cluster_scoped=False))
        withdraw_unwanted(ctx)
    what = "spec.clusterScoped lets Prometheus find the pods of all namespaces, for which no owner can consent"
    return [f"{what}; ask the administrator to start the operator with {FLAG}={ctx.namespace}:*"]


def _permitted(ctx: Reconcile[TidbMonitor]) -> Permission:
    return policy(ctx).judge_everywhere(ctx.namespace)


def apply_cluster_scoped(ctx: Reconcile[TidbMonitor], resource: Resource, desired: Json) -> Outcome:
    """Create a ClusterRole or its binding, or patch its differences. Raises OwnerGone, ApiError, TransportError."""
    cache = ctx.owned.caches.get(resource)
    if cache is None:
        way_out = "leave it out, or have an operator manage all namespaces (-cluster-scoped=true)"
        return Refused("NotPermitted", f"spec.clusterScoped: this operator manages one namespace only; {way_out}")
    if _permitted(ctx) is Permission.NONE:
        return Done()
    desired = marked(desired, "*") if _permitted(ctx) is Permission.GRANTED else desired
    name = desired["metadata"]["name"]
    runtime, cached = ctx.owned.runtime, cache.get("", name)
    if cached is None:
        ctx.live_owner()
        cached = runtime.client.find(resource, name)
    if cached is not None and not _is_of(ctx.name, cached):
        what = f"{resource.kind} {name} exists and is not labelled as this monitor's"
        return Refused("ForeignOwner", f"{what}; delete it, or rename the monitor")
    runtime.applier.apply(resource, {"apiVersion": resource.api_version, "kind": resource.kind} | desired, cached)
    return Done()


def withdraw_unwanted(ctx: Reconcile[TidbMonitor]) -> None:
    """Delete the cluster-scoped objects of a monitor that is no longer clusterScoped; v1.6 leaves them.

    Raises Conflict, other ApiErrors, TransportError.
    """
    name = cluster_role_name(ctx.namespace, ctx.name)
    for resource in OF_ALL_NAMESPACES:
        cache = ctx.owned.caches.get(resource)
        cached = cache.get("", name) if cache is not None else None
        if cached is not None and _is_of(ctx.name, cached):
            delete_if(ctx.owned.runtime.client, resource, name, "", partial(_is_of, ctx.name))


def await_sight(ctx: Reconcile[TidbMonitor], targets: Iterable[Target]) -> Outcome:
    """Wait until Prometheus may list the pods of each namespace with a target.

    A monitor that is not clusterScoped has a Role in its own namespace alone; elsewhere its user may have bound one.
    Raises ApiError, TransportError.
    """
    unseen: dict[str, list[str]] = {}
    for target in targets:
        if target.namespace != ctx.namespace and not ctx.model.spec.cluster_scoped:
            unseen.setdefault(target.namespace, []).append(target.name)
    blind = {namespace: names for namespace, names in unseen.items() if not _may_see(ctx, ROLE_BINDINGS, namespace)}
    if not blind or (CLUSTER_ROLE_BINDINGS in ctx.owned.caches and _may_see(ctx, CLUSTER_ROLE_BINDINGS)):
        return Done()
    clusters = ", ".join(f"{namespace}/{name}" for namespace, names in blind.items() for name in names)
    account = f"ServiceAccount {ctx.namespace}/{monitor_name(ctx.model)}"
    way_out = f"set spec.clusterScoped to true, or bind a Role there that lets {account} get, list and watch pods"
    what = f"Prometheus may not list the pods of {', '.join(blind)}, so it scrapes nothing of {clusters}"
    return Waiting("PodsNotVisible", f"{what}; {way_out}", _LOOK_AGAIN)


def _may_see(ctx: Reconcile[TidbMonitor], resource: Resource, namespace: str = "") -> bool:
    """True if a binding names Prometheus, or the operator may not list bindings."""
    try:
        bindings = ctx.owned.runtime.client.list_page(resource, namespace).items
    except Forbidden:
        return True
    account = ("ServiceAccount", monitor_name(ctx.model), ctx.namespace)
    group = ("Group", f"system:serviceaccounts:{ctx.namespace}", "")
    return any(subjects & {account, group} for subjects in map(_subjects, bindings))


def _subjects(binding: Object) -> set[tuple[str, str, str]]:
    found = binding.decode().get("subjects") or ()
    return {(each.get("kind", ""), each.get("name", ""), each.get("namespace", "")) for each in found}


def finalize(monitor: Object, owned: OwnedObjects) -> None:
    """Delete the cluster-scoped objects of a deleted monitor, which Kubernetes does not delete, and its finalizer.

    Raises Conflict, other ApiErrors, TransportError.
    """
    if FINALIZER not in monitor.metadata.finalizers:
        return
    # delete without the cache, which may not show the newest objects
    _withdraw(owned.runtime.client, owned, monitor)
    owned.runtime.applier.remove_finalizer(TIDB_MONITORS, monitor, FINALIZER)


def _withdraw(client: Client, owned: OwnedObjects, monitor: Object) -> None:
    name = cluster_role_name(monitor.metadata.namespace, monitor.metadata.name)
    for resource in OF_ALL_NAMESPACES:
        if resource in owned.caches:
            delete_if(client, resource, name, "", partial(_is_of, monitor.metadata.name))


def _is_of(monitor: str, found: Object) -> bool:
    carried = found.metadata.labels
    return (carried.get(MANAGED_BY), carried.get(INSTANCE)) == (TIDB_OPERATOR, monitor)
