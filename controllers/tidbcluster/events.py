"""The event handlers that enqueue TidbClusters (lifecycle.md 1.1). Handlers only compute keys (CW-2).

A TidbCluster is enqueued

- on each of its events, including resyncs, which cover everything that depends on time;
- on each change of an object that it owns;
- on changes of those fields of its pods and claims that decisions read.
"""

from apis.consent import ReferencePolicy
from apis.identity import INSTANCE_LABEL
from controllers.child_events import news_of_claim, news_of_pod, of_clusters_of, seen_of_claim, seen_of_pod
from controllers.enqueueing import NEWS, Enqueue, enqueue_object, enqueue_owner, priority_of_add
from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.tombstones import LastKnown, last_known_object
from kube.objects import Object
from kube.reading import Lister
from kube.resources import TIDB_CLUSTERS
from member.labels import MANAGED_BY, TIDB_OPERATOR
from member.observed import instances, restores
from member.observed.pods import is_pod_of


def of_clusters(enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues a TidbCluster on each of its events."""
    return enqueue_object(enqueue)


def of_rivals(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues the rivals for an instance name when a TidbCluster gives it up or is deleted."""

    def others(cluster: Object | None) -> None:
        if cluster is None:
            return
        meta = cluster.metadata
        instance = meta.labels.get(INSTANCE_LABEL) or meta.name
        for other in instances.clusters_of_instance(clusters, meta.namespace, instance):
            enqueue(other.key, NEWS)

    def on_update(old: Object, new: Object) -> None:
        if old.metadata.labels.get(INSTANCE_LABEL) != new.metadata.labels.get(INSTANCE_LABEL):
            others(old)

    return ResourceEventHandlerDetailedFuncs(
        on_update=on_update, on_delete=lambda deleted: others(last_known_object(deleted))
    )


def of_owned(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues the TidbCluster that controls a changed object, before and after the change (CW-3).

    An object that no known TidbCluster controls may block the clusters with its instance name, so these are enqueued.
    """

    def in_the_way(obj: Object) -> list[Object]:
        owner = obj.metadata.controller
        named = clusters.get(obj.metadata.namespace, owner.name) if owner else None
        is_known = owner is not None and named is not None and named.metadata.uid == owner.uid
        return [] if is_known else clusters_of_instance(clusters, obj)

    def seen(obj: Object) -> tuple[object, ...]:
        return obj.metadata.uid, obj.metadata.controller, obj.metadata.labels

    others = of_clusters_of(in_the_way, enqueue, seen)
    return _both(enqueue_owner(TIDB_CLUSTERS, clusters, enqueue, statuses_are_details=True), others)


def of_pods(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues the TidbClusters of a pod's instance label when fields that decisions read change."""
    return of_clusters_of(lambda pod: clusters_of_instance(clusters, pod), enqueue, seen_of_pod, news_of_pod)


def of_claims(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """Like `of_pods`, for volume claims, which have no owner and outlive their pods."""
    return of_clusters_of(lambda claim: clusters_of_instance(clusters, claim), enqueue, seen_of_claim, news_of_claim)


def of_restores(clusters: Lister, enqueue: Enqueue, references: ReferencePolicy) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues all TidbClusters of a database when a Restore turns garbage collection off or on."""

    def enqueue_joined(restore: Object | None, priority: int = NEWS) -> None:
        target = restores.into(restore) if restore is not None else None
        for key in restores.joined(target, clusters.list(), references) if target else ():
            if cluster := clusters.get(*key):
                enqueue(cluster.key, priority)

    def on_update(old: Object, new: Object) -> None:
        if restores.into(old) != restores.into(new):
            enqueue_joined(old)
            enqueue_joined(new)

    return ResourceEventHandlerDetailedFuncs(
        lambda restore, is_in_initial_list: enqueue_joined(restore, priority_of_add(is_in_initial_list)),
        on_update,
        lambda deleted: enqueue_joined(last_known_object(deleted)),
    )


def clusters_of_instance(clusters: Lister, obj: Object) -> list[Object]:
    """The TidbClusters to which an object belongs by its labels; several if they share an instance name."""
    if obj.metadata.labels.get(MANAGED_BY) != TIDB_OPERATOR:
        return []
    return instances.clusters_of_instance(clusters, obj.metadata.namespace, obj.metadata.labels.get(INSTANCE_LABEL, ""))


def clusters_of_pod(clusters: Lister, pod: Object) -> list[Object]:
    """The TidbCluster to which a pod belongs by its labels and its name; at most one."""
    return [cluster for cluster in clusters_of_instance(clusters, pod) if is_pod_of(cluster.metadata.name, pod)]


def _both(
    one: ResourceEventHandlerDetailedFuncs, other: ResourceEventHandlerDetailedFuncs
) -> ResourceEventHandlerDetailedFuncs:
    def on_add(obj: Object, is_in_initial_list: bool) -> None:
        one.on_add(obj, is_in_initial_list)
        other.on_add(obj, is_in_initial_list)

    def on_update(old: Object, new: Object) -> None:
        one.on_update(old, new)
        other.on_update(old, new)

    def on_delete(deleted: LastKnown) -> None:
        one.on_delete(deleted)
        other.on_delete(deleted)

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, on_delete)
