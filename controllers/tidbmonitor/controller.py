"""The assembly of the controller of TidbMonitor (CW-1)."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from apis.consent import BY_CONSENT, ReferencePolicy
from apis.monitors import CLUSTER_SELECTOR, TidbMonitor, with_monitor_defaults
from apis.validation.monitors import labels_selected_by, validate_monitor
from controllers.cluster_etcd import EtcdOf
from controllers.controller import Controller
from controllers.enqueueing import NEWS, Enqueue, is_resync
from controllers.informing import NO_RESYNC
from controllers.runtime import Runtime
from controllers.simple_kind import SimpleKind
from controllers.status_fields import STATUS_FIELDS
from controllers.target_cluster import listed_clusters
from controllers.tidbmonitor.rights import OF_ALL_NAMESPACES, finalize
from controllers.tidbmonitor.stages import PRUNED, STAGES, dashboard_addresses, observe
from controllers.tidbmonitor.targets import listed_dm_clusters
from controllers.unheeded import of_kind
from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.tombstones import last_known_object
from kube.objects import Object
from kube.reading import Lister
from kube.resources import (
    DEPLOYMENTS,
    DM_CLUSTERS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    TIDB_CLUSTERS,
    TIDB_MONITORS,
    Resource,
)
from member.labels import TIDB_OPERATOR

TIDB_MONITOR = SimpleKind(
    resource=TIDB_MONITORS,
    model=TidbMonitor,
    stages=STAGES,
    owns=(*PRUNED, DEPLOYMENTS),
    reads=(PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, *OF_ALL_NAMESPACES),
    refers={TIDB_CLUSTERS: listed_clusters, DM_CLUSTERS: listed_dm_clusters},
    managed_by=TIDB_OPERATOR,
    defaults=with_monitor_defaults,
    observe=observe,
    problems=validate_monitor,
    finalize=finalize,
    further_conditions=of_kind,
    status_fields=STATUS_FIELDS,
)


def tidb_monitor_controllers(
    runtime: Runtime,
    selector: str,
    permitted: Collection[Resource],
    etcd_of: EtcdOf,
    references: ReferencePolicy = BY_CONSENT,
) -> tuple[Controller, ...]:
    """Register handlers and return the controller, which is not started.

    `etcd_of` returns clients of the clusters' etcd; for the other arguments see `SimpleKind.controllers`.
    """
    kind = replace(TIDB_MONITOR, stages=(*STAGES, dashboard_addresses(etcd_of)))
    (controller,) = kind.controllers(runtime, selector, permitted, settings=references)
    objects = runtime.informers(selector)
    monitors = objects.lister_for(TIDB_MONITORS)
    objects.informer_for(TIDB_CLUSTERS).add_event_handler(_selecting(monitors, controller.enqueue), NO_RESYNC)
    return (controller,)


def _selecting(monitors: Lister, enqueue: Enqueue) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues the monitors that select a changed TidbCluster by label, before or after the change."""

    def tell(cluster: Object | None) -> None:
        for monitor in monitors.list() if cluster else ():
            if cluster is not None and _selects(monitor, cluster):
                enqueue(monitor.key, NEWS)

    def on_update(old: Object, new: Object) -> None:
        if not is_resync(old, new):
            tell(new)
            if old.metadata.labels != new.metadata.labels:
                tell(old)

    return ResourceEventHandlerDetailedFuncs(
        lambda cluster, _: tell(cluster), on_update, lambda deleted: tell(last_known_object(deleted))
    )


def _selects(monitor: Object, cluster: Object) -> bool:
    annotations: Mapping[str, str] = monitor.metadata.annotations
    if CLUSTER_SELECTOR not in annotations:
        return False
    try:
        wanted = labels_selected_by(annotations[CLUSTER_SELECTOR])
    except ValueError:
        return False
    return wanted.items() <= cluster.metadata.labels.items()
