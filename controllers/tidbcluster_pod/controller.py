"""The assembly of the controller of pods of TidbClusters: handlers, queue, sync (CW-1)."""

from controllers.controller import Controller
from controllers.enqueueing import Enqueue
from controllers.informing import NO_RESYNC, Informers
from controllers.runtime import Runtime
from controllers.tidbcluster.commands import Commands
from controllers.tidbcluster_pod import events
from controllers.tidbcluster_pod.sync import TidbClusterPodSync
from kube.resources import PODS, TIDB_CLUSTERS
from member.context import Dependencies

NAME = "tidbcluster-pod"
"""The name of the controller in logs and metrics."""

QUEUE = "tidbcluster pods"
"""The name of the queue in metrics, as in v1.6."""


def tidb_cluster_pod_controller(
    runtime: Runtime,
    clusters: Informers,
    owned: Informers,
    deps: Dependencies,
    commands: Commands,
    *,
    enqueue_cluster: Enqueue,
) -> Controller:
    """Register handlers and return the controller, which is not started.

    Arguments as for `tidb_cluster_controller`; `enqueue_cluster` adds the key of a cluster to the queue of that.
    """
    cluster_lister, pod_lister = clusters.lister_for(TIDB_CLUSTERS), owned.lister_for(PODS)
    sync = TidbClusterPodSync(cluster_lister, deps, runtime, commands, enqueue_cluster)
    controller = runtime.controller(NAME, sync, queue=QUEUE, is_slow=sync.is_slow)
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(events.of_clusters(pod_lister, controller.enqueue))
    owned.informer_for(PODS).add_event_handler(events.of_pods(cluster_lister, controller.enqueue), NO_RESYNC)
    return controller
