"""The assembly of the controller of DMCluster (CW-1)."""

from dataclasses import replace
from functools import partial

from controllers.controller import Controller
from controllers.dmcluster import conditions, events
from controllers.dmcluster.kind import DM_CLUSTER
from controllers.dmcluster.metrics import DMClusterMetrics
from controllers.enqueueing import enqueue_owner
from controllers.informing import NO_RESYNC, Informers
from controllers.kind_controller import kind_controller
from controllers.other_operators import OtherOperators
from controllers.runtime import Runtime
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
)
from member.context import Dependencies
from member.memory import CertificateBook

_OWNED = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)


def dm_cluster_controller(
    runtime: Runtime, clusters: Informers, owned: Informers, deps: Dependencies, others: OtherOperators | None = None
) -> Controller:
    """Register handlers and return the controller, not started. Arguments as for `tidb_cluster_controller`."""
    lister = clusters.lister_for(DM_CLUSTERS)
    DMClusterMetrics(runtime.registry, lister, partial(runtime.key_locks.fence_of, DM_CLUSTERS))
    # a TidbCluster may have the same name but other certificates
    own = replace(deps, certificates=CertificateBook())
    kind = replace(DM_CLUSTER, conditions=others.telling(conditions.conditions)) if others else DM_CLUSTER
    controller = kind_controller(runtime, kind, clusters, own)
    enqueue = controller.enqueue
    for resource in _OWNED:
        owned.informer_for(resource).add_event_handler(
            enqueue_owner(DM_CLUSTERS, lister, enqueue, statuses_are_details=True), NO_RESYNC
        )
    owned.informer_for(PODS).add_event_handler(events.of_pods(lister, enqueue), NO_RESYNC)
    owned.informer_for(PERSISTENT_VOLUME_CLAIMS).add_event_handler(events.of_claims(lister, enqueue), NO_RESYNC)
    return controller
