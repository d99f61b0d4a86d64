"""The assembly of all controllers of the operator, for a process and for the simulator."""

from collections.abc import Callable, Collection, Mapping

from controllers.backup.controller import backup_controller
from controllers.backup_schedule.controller import backup_schedule_controller
from controllers.cluster_etcd import etcd_of
from controllers.compact_backup.controller import compact_backup_controller
from controllers.controller import Controller
from controllers.dashboard.kind import TIDB_DASHBOARD
from controllers.dmcluster.controller import dm_cluster_controller
from controllers.informing import Informers
from controllers.initializer.kind import TIDB_INITIALIZER
from controllers.ng_monitoring.kind import TIDB_NG_MONITORING
from controllers.other_operators import OtherOperators
from controllers.restore.controller import restore_controller
from controllers.runtime import Runtime
from controllers.tidbcluster.commands import Commands
from controllers.tidbcluster.controller import tidb_cluster_controller
from controllers.tidbcluster_pod.controller import tidb_cluster_pod_controller
from controllers.tidbmonitor.controller import tidb_monitor_controllers
from dataplane.clients import DataPlane
from kube.reading import Lister
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    JOBS,
    NODES,
    OTHER_STATEFUL_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    Resource,
)
from member.backups.naming import jobs_selector
from member.context import Dependencies, Listers, Settings
from member.labels import MANAGED_BY, TIDB_OPERATOR
from ports.randomness import Randomness, SecretRandomness

_SIMPLE_KINDS = (TIDB_INITIALIZER, TIDB_DASHBOARD, TIDB_NG_MONITORING)


def addressed(advanced: bool) -> Mapping[Resource, Resource]:
    """The resources that clients address, by those that code names; `advanced`: the feature is on.

    Code names the StatefulSets that the operator uses STATEFUL_SETS, and those that it converts OTHER_STATEFUL_SETS.
    """
    return {STATEFUL_SETS: ADVANCED_STATEFUL_SETS, OTHER_STATEFUL_SETS: STATEFUL_SETS} if advanced else {}


def tidb_controllers(
    runtime: Runtime,
    dataplane: DataPlane,
    settings: Settings,
    *,
    selector: str,
    permitted: Collection[Resource],
    others: OtherOperators | None = None,
    passwords: Randomness | None = None,
    on_wired: Callable[[Dependencies], None] = lambda _deps: None,
) -> tuple[Controller, ...]:
    """Register handlers and return the controllers, which are not started.

    `selector` selects the custom resources by label. Cluster-scoped resources are only watched if they are `permitted`
    (lifecycle.md 1.4). `others` detects other operators. `passwords` replaces the secure source of passwords in tests.
    `on_wired` gets the dependencies of the clusters' controllers.
    """
    clusters, owned = runtime.informers(selector), runtime.informers(f"{MANAGED_BY}={TIDB_OPERATOR}")
    clusters.informer_for(TIDB_CLUSTERS)
    clusters.informer_for(DM_CLUSTERS)
    jobs = runtime.informers(jobs_selector())
    deps = Dependencies(
        runtime.client,
        runtime.secrets,
        runtime.applier,
        dataplane,
        runtime.recorder,
        runtime.clock,
        settings,
        _listers(clusters, owned, runtime.informers(""), permitted),
        passwords=passwords or SecretRandomness(),
    )
    on_wired(deps)
    runtime.follow_secrets()
    etcd = etcd_of(deps)
    commands: Commands = runtime.memory(dict, TIDB_CLUSTERS)
    tidb_clusters = tidb_cluster_controller(runtime, clusters, owned, deps, commands, others=others)
    return (
        tidb_clusters,
        tidb_cluster_pod_controller(runtime, clusters, owned, deps, commands, enqueue_cluster=tidb_clusters.enqueue),
        backup_controller(runtime, clusters, jobs, settings.backup_manager, settings.references, etcd),
        restore_controller(runtime, clusters, jobs, settings.backup_manager, settings.references),
        backup_schedule_controller(runtime, clusters, jobs, settings.backup_manager),
        dm_cluster_controller(runtime, clusters, owned, deps, others),
        compact_backup_controller(runtime, clusters, jobs, settings.backup_manager, settings.references),
        *tidb_monitor_controllers(runtime, selector, permitted, etcd, settings.references),
        *(
            controller
            for kind in _SIMPLE_KINDS
            for controller in kind.controllers(runtime, selector, permitted, {JOBS: jobs}, settings.references)
        ),
    )


def _listers(
    clusters: Informers, owned: Informers, infrastructure: Informers, permitted: Collection[Resource]
) -> Listers:
    """The caches that stages read; their informers are created here."""

    def optional(factory: Informers, resource: Resource) -> Lister | None:
        return factory.lister_for(resource) if resource in permitted else None

    return Listers(
        tidb_clusters=clusters.lister_for(TIDB_CLUSTERS),
        stateful_sets=owned.lister_for(STATEFUL_SETS),
        services=owned.lister_for(SERVICES),
        config_maps=owned.lister_for(CONFIG_MAPS),
        deployments=owned.lister_for(DEPLOYMENTS),
        service_accounts=owned.lister_for(SERVICE_ACCOUNTS),
        roles=owned.lister_for(ROLES),
        role_bindings=owned.lister_for(ROLE_BINDINGS),
        pods=owned.lister_for(PODS),
        persistent_volume_claims=owned.lister_for(PERSISTENT_VOLUME_CLAIMS),
        # Kubernetes may have ten thousand foreign volumes: the operator labels its own when it first reads them
        persistent_volumes=optional(owned, PERSISTENT_VOLUMES),
        nodes=optional(infrastructure, NODES),
        storage_classes=optional(infrastructure, STORAGE_CLASSES),
        restores=clusters.lister_for(RESTORES),
    )
