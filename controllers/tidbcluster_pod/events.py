"""Which events bring which pod back (lifecycle.md 1.2). Handlers only compute keys (CW-2).

A pod comes when it carries a command, or has lost one, or when its cluster's status holds an eviction of it. Every
event of a cluster brings all such pods of it, resyncs included: so the resyncs of pods have nothing to add.
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
from member.commands.annotations import is_commanded
from member.labels import MANAGED_BY, TIDB_OPERATOR
from member.observed.belonging import is_pod_of


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
    """A pod that has, had, or may have had a command enqueues itself."""

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
    """Every event of a TidbCluster enqueues the pods of it that have a command, or an eviction to end."""

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
