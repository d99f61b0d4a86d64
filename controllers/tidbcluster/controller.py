"""The controller of TidbCluster, put together: informers, handlers, queue, sync (CW-1)."""

from collections.abc import Callable, Collection

from controllers.controller import Controller
from controllers.informing import Informers
from controllers.key_locks import KeyLocks
from controllers.metrics import ClusterMetrics, ControllerMetrics
from controllers.queues import controller_queue
from controllers.tidbcluster import events
from controllers.tidbcluster.sync import TidbClusterSync
from kube.reading import Lister
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    Resource,
)
from member.context import Dependencies, Listers, Settings
from workqueue.metrics import MetricsProvider
from workqueue.timers import Timers

NAME = "tidbcluster"

_OWNED = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)


def tidb_cluster_controller(
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
    cluster_metrics: ClusterMetrics,
    queue_metrics: MetricsProvider,
    drain_timeout: float,
) -> Controller:
    """Register handlers and return the controller; nothing is started.

    `clusters` is the factory of the custom resources, `owned` that of the objects made for them, by label,
    `infrastructure` that of what is the Kubernetes cluster's. Of cluster-scoped resources, only those that are
    `permitted` are asked for (lifecycle.md 1.4). `key_locks` is shared with the controller of the pods.
    """
    metrics = controller_metrics.of(NAME)
    queue = controller_queue(NAME, timers, metrics=queue_metrics, on_throttled=metrics.record_throttled)
    cluster_lister = clusters.lister_for(TIDB_CLUSTERS)
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(events.of_clusters(queue.add))
    for resource in _OWNED:
        owned.informer_for(resource).add_event_handler(events.of_owned(cluster_lister, queue.add))
    owned.informer_for(PODS).add_event_handler(events.of_pods(cluster_lister, queue.add))
    claims = owned.informer_for(PERSISTENT_VOLUME_CLAIMS)
    claims.add_event_handler(events.of_claims(cluster_lister, queue.add))
    sync = TidbClusterSync(
        cluster_lister,
        listers(owned, infrastructure, permitted),
        settings=settings,
        deps=deps,
        has_status_subresource=has_status_subresource,
        metrics=cluster_metrics,
        key_locks=key_locks,
    )
    return Controller(
        NAME, queue, sync, clock=deps.clock, metrics=metrics, drain_timeout=drain_timeout, is_slow=sync.is_slow
    )


def listers(owned: Informers, infrastructure: Informers, permitted: Collection[Resource]) -> Listers:
    """The caches that stages read; asking for one creates its informer."""

    def optional(factory: Informers, resource: Resource) -> Lister | None:
        return factory.lister_for(resource) if resource in permitted else None

    return Listers(
        config_maps=owned.lister_for(CONFIG_MAPS),
        deployments=owned.lister_for(DEPLOYMENTS),
        persistent_volume_claims=owned.lister_for(PERSISTENT_VOLUME_CLAIMS),
        pods=owned.lister_for(PODS),
        role_bindings=owned.lister_for(ROLE_BINDINGS),
        roles=owned.lister_for(ROLES),
        service_accounts=owned.lister_for(SERVICE_ACCOUNTS),
        services=owned.lister_for(SERVICES),
        stateful_sets=owned.lister_for(STATEFUL_SETS),
        # a cluster may hold ten thousand volumes of others: ours carry our label from the first look at them on
        persistent_volumes=optional(owned, PERSISTENT_VOLUMES),
        nodes=optional(infrastructure, NODES),
        storage_classes=optional(infrastructure, STORAGE_CLASSES),
    )
