"""The owner of an instance name (objects.md 1.2).

Every selector contains the instance name: two clusters that share it send requests to each other's pods, and a new PD
would join the other cluster. The name belongs to the cluster that runs or has data under it, otherwise to the older
one. The operator creates nothing for the others. Clusters that refer to each other by `spec.cluster` count as one.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from apis.components import component_names
from apis.data_volumes import cluster_id_of, is_claim_of
from apis.identity import FORCE_PD_BOOTSTRAP, INSTANCE_LABEL, instance_name
from kube.objects import Object
from kube.reading import Lister
from kube.resources import DEPLOYMENTS, PODS, SERVICES, STATEFUL_SETS, TIDB_CLUSTERS
from member import labels
from member.context import Listers, ReconcileContext
from member.observed.pods import is_controlled_by, is_pod_of
from member.outcome import Refused, Waiting

TAKEN = "InstanceTaken"
_LOOK_AGAIN = 30.0
"""Seconds until the next check, in case an event is missed."""
_NAMED = 5
"""The most objects that a message names."""


class _Reference(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Spec(msgspec.Struct, frozen=True):
    cluster: _Reference | None = None


class _Cluster(msgspec.Struct, frozen=True):
    spec: _Spec


def clusters_of_instance(clusters: Lister, namespace: str, instance: str) -> list[Object]:
    """The TidbClusters with an instance name: by their label (lifecycle.md 1.2), without a label by their own name."""
    if not instance:
        return []
    labelled = clusters.list(namespace, {INSTANCE_LABEL: instance})
    named = clusters.get(namespace, instance)
    return [*labelled, named] if named is not None and not named.metadata.labels.get(INSTANCE_LABEL) else labelled


def instance_taken(ctx: ReconcileContext) -> Refused | Waiting | None:
    """Why the operator may create nothing under the instance name of the cluster; None if the name is its own.

    Reads caches. Before a cluster starts under a shared name, it also reads the StatefulSets of the others live. Raises
    ApiError, TransportError.
    """
    listers, instance = ctx.listers, instance_name(ctx.tc)
    sharing = clusters_of_instance(listers.tidb_clusters, ctx.namespace, instance)
    others = [obj for obj in sharing if obj.metadata.uid != ctx.owner.metadata.uid and not _are_one(ctx.owner, obj)]
    rivals = [obj for obj in others if _instances(listers, obj) <= {instance}]
    first = min([ctx.owner, *rivals], key=lambda each: _rank(ctx, each)) if rivals else ctx.owner
    if first is not ctx.owner:
        return _refused(first, instance)
    if next(_workloads(listers, ctx.owner), None):
        return None
    if running := rivals and _running_live(ctx, rivals):
        return _refused(running, instance)
    return _occupied(ctx, instance, {obj.metadata.name for obj in sharing if _are_one(ctx.owner, obj)})


def _running_live(ctx: ReconcileContext, rivals: Sequence[Object]) -> Object | None:
    """A rival that has StatefulSets under the name, which the cache may not show yet (F1)."""
    carried = labels.selector_text(labels.cluster_labels(ctx.tc))
    found = ctx.deps.client.list_page(STATEFUL_SETS, ctx.namespace, label_selector=carried).items
    owners = {obj.metadata.controller.uid for obj in found if obj.metadata.controller}
    return next((rival for rival in rivals if rival.metadata.uid in owners), None)


def _refused(first: Object, instance: str) -> Refused:
    what = f"instance name {instance} belongs to TidbCluster {first.metadata.name}, which had it first"
    way_out = f"no changes are made; give this TidbCluster another label {INSTANCE_LABEL}, or delete one of the two"
    return Refused(TAKEN, f"{what}; {way_out}", _LOOK_AGAIN)


def _rank(ctx: ReconcileContext, cluster: Object) -> tuple[bool, bool, str, str]:
    """The sort key of clusters that share a name: running first, then with data (e.g.

    recreated clusters), then by age.
    """
    meta = cluster.metadata
    runs = next(_workloads(ctx.listers, cluster), None) is not None
    data = any(is_claim_of(meta.name, obj.metadata.name, obj.metadata.labels) for obj in _with_data(ctx))
    return not runs, not data, meta.creation_timestamp or "", meta.name


def _with_data(ctx: ReconcileContext) -> Iterator[Object]:
    """The claims with the instance name that contain data of a cluster."""
    carried = ctx.listers.persistent_volume_claims.list(ctx.namespace, labels.cluster_labels(ctx.tc))
    return (obj for obj in carried if cluster_id_of(obj.metadata.labels, obj.metadata.annotations))


def _instances(listers: Listers, cluster: Object) -> set[str]:
    """The instance names in the selectors of a cluster's running workloads. Selectors are immutable."""
    return {instance_of(workload) for workload in _workloads(listers, cluster)}


def _workloads(listers: Listers, cluster: Object) -> Iterator[Object]:
    meta = cluster.metadata
    sets = ((listers.stateful_sets, f"{meta.name}-{component}") for component in component_names())
    names = chain([(listers.deployments, f"{meta.name}-discovery")], sets)
    found = (lister.get(meta.namespace, name) for lister, name in names)
    return (obj for obj in found if obj is not None and is_controlled_by(obj, meta.uid))


def instance_of(workload: Object) -> str:
    """The instance name in the selector of a StatefulSet or Deployment; empty if it has none."""
    return str((workload.decode()["spec"]["selector"].get("matchLabels") or {}).get(INSTANCE_LABEL, ""))


def _are_one(one: Object, other: Object) -> bool:
    """True if one of the clusters joins the other by `spec.cluster` (objects.md 8)."""
    return _refers_to(one, other) or _refers_to(other, one)


def _refers_to(one: Object, other: Object) -> bool:
    reference = one.decode_as(_Cluster).spec.cluster
    if reference is None:
        return False
    namespace = reference.namespace or one.metadata.namespace
    return (namespace, reference.name) == (other.metadata.namespace, other.metadata.name)


def _occupied(ctx: ReconcileContext, instance: str, related: set[str]) -> Refused | Waiting | None:
    """Objects of other clusters with the instance name, which block a cluster that has not started yet."""
    own = {ctx.name, *related}
    if left := list(_leftovers(ctx, own)):
        owners = ", ".join(sorted({owner for owner, _ in left}))
        what = f"instance name {instance} is carried by objects of TidbCluster {owners}"
        return Waiting(TAKEN, f"{what}; waiting until they are gone: {_some([each for _, each in left])}", _LOOK_AGAIN)
    given_up = ctx.tc.metadata.annotations.get(FORCE_PD_BOOTSTRAP)
    claims = [
        claim.metadata.name
        for claim in _with_data(ctx)
        if not any(is_claim_of(name, claim.metadata.name, claim.metadata.labels) for name in own)
        and cluster_id_of(claim.metadata.labels, claim.metadata.annotations) != given_up
    ]
    if not claims:
        return None
    what = f"instance name {instance} is carried by volumes with the data of another TidbCluster: {_some(claims)}"
    return Refused(TAKEN, f"{what}; delete them, or give this TidbCluster another label {INSTANCE_LABEL}", _LOOK_AGAIN)


def _leftovers(ctx: ReconcileContext, own: set[str]) -> Iterator[tuple[str, str]]:
    """The other TidbClusters that control an object with the instance name, and that object."""
    listers, carried = ctx.listers, labels.cluster_labels(ctx.tc)
    for resource, lister in (
        (STATEFUL_SETS, listers.stateful_sets),
        (DEPLOYMENTS, listers.deployments),
        (SERVICES, listers.services),
    ):
        for obj in lister.list(ctx.namespace, carried):
            owner = obj.metadata.controller
            if owner is not None and owner.kind == TIDB_CLUSTERS.kind and owner.name not in own:
                yield owner.name, f"{resource.kind} {obj.metadata.name}"
    for pod in listers.pods.list(ctx.namespace, carried):
        owner, component = pod.metadata.controller, pod.metadata.labels.get(labels.COMPONENT, "")
        if owner is None or owner.kind != STATEFUL_SETS.kind:
            continue
        cluster = owner.name.removesuffix(f"-{component}")
        if cluster not in own and is_pod_of(cluster, pod):
            yield cluster, f"{PODS.kind} {pod.metadata.name}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
