"""The event handlers that enqueue pods (lifecycle.md 1.2). Handlers only compute keys (CW-2).

A pod is enqueued if it carries a command, has lost one, or the status of its cluster has an eviction of it. Every event
of a cluster, including resyncs, enqueues all such pods of it, so that pods need no resyncs of their own.
"""

from collections.abc import Mapping

import msgspec

from apis.identity import INSTANCE_LABEL
from controllers.enqueueing import NEWS, NO_NEWS, Enqueue, is_resync, priority_of_add
from controllers.tidbcluster.events import clusters_of_pod
from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.tombstones import LastKnown, last_known_object
from kube.objects import Object
from kube.reading import Lister
from member.labels import MANAGED_BY, TIDB_OPERATOR
from member.observed.command_annotations import is_commanded
from member.observed.pods import is_pod_of


class _TiKVStatus(msgspec.Struct, frozen=True, rename="camel"):
    evict_leader: Mapping[str, msgspec.Raw] | None = None


class _Status(msgspec.Struct, frozen=True):
    tikv: _TiKVStatus | None = None


class _Cluster(msgspec.Struct, frozen=True):
    status: _Status | None = None


def evicted_pods(cluster: Object) -> frozenset[str]:
    """The pods whose leaders are evicted by command, according to the status of their TidbCluster."""
    status = cluster.decode_as(_Cluster).status
    return frozenset((status and status.tikv and status.tikv.evict_leader) or ())


def of_pods(clusters: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues a pod that has or had a command, or whose leaders are evicted by one."""

    def has_work(pod: Object) -> bool:
        return any(
            is_commanded(pod) or pod.metadata.name in evicted_pods(cluster)
            for cluster in clusters_of_pod(clusters, pod)
        )

    def on_add(pod: Object, is_in_initial_list: bool) -> None:
        if has_work(pod):
            enqueue(pod.key, priority_of_add(is_in_initial_list))

    def on_update(old: Object, new: Object) -> None:
        if not is_resync(old, new) and (has_work(new) or is_commanded(old)):
            enqueue(new.key)

    def on_delete(deleted: LastKnown) -> None:
        pod = last_known_object(deleted)
        if pod is not None and has_work(pod):
            enqueue(pod.key)

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, on_delete)


def of_clusters(pods: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues, on each event of a TidbCluster, its pods with a command or an eviction to end."""

    def enqueue_pods(cluster: Object, priority: int) -> None:
        meta = cluster.metadata
        instance = meta.labels.get(INSTANCE_LABEL) or meta.name
        found = pods.list(meta.namespace, {MANAGED_BY: TIDB_OPERATOR, INSTANCE_LABEL: instance})
        commanded = {pod.metadata.name for pod in found if is_commanded(pod) and is_pod_of(meta.name, pod)}
        for name in sorted(commanded | evicted_pods(cluster)):
            enqueue(f"{meta.namespace}/{name}", priority)

    return ResourceEventHandlerDetailedFuncs(
        on_add=lambda cluster, is_in_initial_list: enqueue_pods(cluster, priority_of_add(is_in_initial_list)),
        on_update=lambda old, new: enqueue_pods(new, NO_NEWS if is_resync(old, new) else NEWS),
    )
