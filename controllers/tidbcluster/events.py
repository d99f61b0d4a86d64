"""Which events bring which cluster back (lifecycle.md 1.1). Handlers only compute keys (CW-2).

TidbClusters come on every event, resyncs included: what depends on time is looked at then. What a cluster owns comes
when it changed; a pod or a volume claim only when something a decision reads has changed.
"""

from collections.abc import Callable

from apis.identity import INSTANCE_LABEL
from controllers.enqueueing import NEWS, Enqueue, enqueue_object, enqueue_owner, is_resync, priority_of_add
from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.tombstones import LastKnown, last_known_object
from kube.objects import Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member.labels import CONTROLLER_REVISION_HASH, MANAGED_BY, POD_SCHEDULING, PVC_DEFER_DELETING, TIDB_OPERATOR
from member.observed.claims import Claim
from member.observed.pods import Pod


def of_clusters(enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """Every event of a TidbCluster enqueues it."""
    return enqueue_object(enqueue)


def of_owned(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A change of an object enqueues the TidbCluster that controls it, before and after (CW-3)."""
    return enqueue_owner(TIDB_CLUSTERS, clusters, enqueue)


def of_pods(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A pod that comes, goes, or changes in what decisions read enqueues the TidbCluster of its instance label."""
    return _of_instance(clusters, enqueue, _seen_of_pod)


def of_claims(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """As `of_pods`, for volume claims: nobody owns them, and they outlive their pods."""
    return _of_instance(clusters, enqueue, _seen_of_claim)


def clusters_of_instance(clusters: Lister, obj: Object) -> list[Object]:
    """The TidbClusters that an object belongs to, by its labels; more than one only when their own labels say so."""
    if obj.metadata.labels.get(MANAGED_BY) != TIDB_OPERATOR:
        return []
    namespace, name = obj.metadata.namespace, obj.metadata.labels.get(INSTANCE_LABEL, "")
    named = clusters.get(namespace, name)
    # a cluster may carry an instance label of its own (lifecycle.md 1.2)
    return [named] if named else clusters.list(namespace, {INSTANCE_LABEL: name})


def _of_instance(
    clusters: Lister, enqueue: Enqueue, seen: Callable[[Object], tuple[object, ...]]
) -> ResourceEventHandlerDetailedFuncs:
    def instance(obj: Object | None, priority: int = NEWS) -> None:
        for cluster in clusters_of_instance(clusters, obj) if obj else ():
            enqueue(cluster.key, priority)

    def on_add(obj: Object, is_in_initial_list: bool) -> None:
        instance(obj, priority_of_add(is_in_initial_list))

    def on_update(old: Object, new: Object) -> None:
        if not is_resync(old, new) and seen(old) != seen(new):
            instance(new)

    def on_delete(deleted: LastKnown) -> None:
        instance(last_known_object(deleted))

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, on_delete)


def _seen_of_pod(pod: Object) -> tuple[object, ...]:
    """What decisions read of a pod."""
    seen = pod.decode_as(Pod)
    revision = pod.metadata.labels.get(CONTROLLER_REVISION_HASH)
    return pod.metadata.uid, seen.status.phase, seen.is_ready, seen.trouble, seen.spec.node_name, revision


def _seen_of_claim(claim: Object) -> tuple[object, ...]:
    """What decisions read of a claim."""
    meta, seen = claim.metadata, claim.decode_as(Claim)
    marks = tuple(meta.annotations.get(key) for key in (PVC_DEFER_DELETING, POD_SCHEDULING))
    return meta.uid, meta.deletion_timestamp, marks, seen.status.phase, seen.status.capacity.storage
