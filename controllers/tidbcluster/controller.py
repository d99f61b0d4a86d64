"""The controller of TidbCluster, put together: informers, handlers, queue, sync (CW-1)."""

from collections.abc import Callable

from controllers.controller import Controller
from controllers.metrics import ClusterMetrics, ControllerMetrics
from controllers.queues import controller_queue
from controllers.tidbcluster import events
from controllers.tidbcluster.sync import TidbClusterSync
from informers.factory import SharedInformerFactory
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from member.round import Doors, Listers, Settings
from workqueue.metrics import MetricsProvider
from workqueue.timers import Timers

NAME = "tidbcluster"

_OWNED = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)


def tidb_cluster_controller(
    clusters: SharedInformerFactory,
    owned: SharedInformerFactory,
    settings: Settings,
    doors: Doors,
    has_status_subresource: Callable[[], bool],
    *,
    timers: Timers,
    controller_metrics: ControllerMetrics,
    cluster_metrics: ClusterMetrics,
    queue_metrics: MetricsProvider,
    drain_timeout: float,
) -> Controller:
    """Register handlers and return the controller; nothing is started.

    `clusters` is the factory of the custom resources, `owned` that of the objects made for them.
    """
    metrics = controller_metrics.of(NAME)
    queue = controller_queue(NAME, timers, metrics=queue_metrics, on_throttled=metrics.record_throttled)
    cluster_lister = clusters.lister_for(TIDB_CLUSTERS)
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(events.of_clusters(queue.add))
    for resource in _OWNED:
        owned.informer_for(resource).add_event_handler(events.of_owned(cluster_lister, queue.add))
    owned.informer_for(PODS).add_event_handler(events.of_pods(cluster_lister, queue.add))
    sync = TidbClusterSync(
        cluster_lister,
        _listers(owned),
        settings=settings,
        doors=doors,
        has_status_subresource=has_status_subresource,
        metrics=cluster_metrics,
    )
    return Controller(NAME, queue, sync, clock=doors.clock, metrics=metrics, drain_timeout=drain_timeout)


def _listers(factory: SharedInformerFactory) -> Listers:
    return Listers(
        config_maps=factory.lister_for(CONFIG_MAPS),
        deployments=factory.lister_for(DEPLOYMENTS),
        persistent_volume_claims=factory.lister_for(PERSISTENT_VOLUME_CLAIMS),
        pods=factory.lister_for(PODS),
        role_bindings=factory.lister_for(ROLE_BINDINGS),
        roles=factory.lister_for(ROLES),
        service_accounts=factory.lister_for(SERVICE_ACCOUNTS),
        services=factory.lister_for(SERVICES),
        stateful_sets=factory.lister_for(STATEFUL_SETS),
    )
