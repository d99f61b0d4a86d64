"""The controller of the pods of TidbClusters, put together: informers, handlers, queue, sync (CW-1)."""

from collections.abc import Callable, Collection

from controllers.controller import Controller
from controllers.informing import Informers
from controllers.key_locks import KeyLocks
from controllers.metrics import ControllerMetrics
from controllers.queues import controller_queue
from controllers.tidbcluster.controller import listers
from controllers.tidbcluster_pod import events
from controllers.tidbcluster_pod.sync import TidbClusterPodSync
from kube.resources import PODS, TIDB_CLUSTERS, Resource
from member.context import Dependencies, Settings
from workqueue.metrics import MetricsProvider
from workqueue.timers import Timers

NAME = "tidbcluster-pod"
"""The controller in logs and metrics."""

QUEUE = "tidbcluster pods"
"""The queue in metrics, as v1.6 calls it."""


def tidb_cluster_pod_controller(
    clusters: Informers,
    owned: Informers,
    infrastructure: Informers,
    settings: Settings,
    deps: Dependencies,
    *,
    has_status_subresource: Callable[[], bool],
    permitted: Collection[Resource],
    key_locks: KeyLocks,
    timers: Timers,
    controller_metrics: ControllerMetrics,
    queue_metrics: MetricsProvider,
    drain_timeout: float,
) -> Controller:
    """Register handlers and return the controller; nothing is started. Arguments as for `tidb_cluster_controller`."""
    metrics = controller_metrics.of(NAME)
    queue = controller_queue(QUEUE, timers, metrics=queue_metrics, on_throttled=metrics.record_throttled)
    cluster_lister, pod_lister = clusters.lister_for(TIDB_CLUSTERS), owned.lister_for(PODS)
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(events.of_clusters(pod_lister, queue.add))
    owned.informer_for(PODS).add_event_handler(events.of_pods(cluster_lister, queue.add))
    sync = TidbClusterPodSync(
        cluster_lister,
        listers(owned, infrastructure, permitted),
        settings=settings,
        deps=deps,
        has_status_subresource=has_status_subresource,
        key_locks=key_locks,
    )
    return Controller(
        NAME, queue, sync, clock=deps.clock, metrics=metrics, drain_timeout=drain_timeout, is_slow=sync.is_slow
    )
