"""The assembly of the controller of TidbCluster (CW-1)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

import msgspec

from apis.shared import TidbClusterRef
from controllers.conditions import ConditionValue
from controllers.consent import consents_differ
from controllers.controller import Controller
from controllers.informing import NO_RESYNC, Informers
from controllers.kind_controller import kind_controller
from controllers.other_operators import OtherOperators
from controllers.references import References
from controllers.runtime import Runtime
from controllers.tidbcluster import conditions, events
from controllers.tidbcluster.commands import Commands, not_done
from controllers.tidbcluster.kind import TIDB_CLUSTER
from controllers.tidbcluster.metrics import ClusterMetrics
from kube.objects import Object
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from member.api_clients import clusters_of_addresses
from member.context import Dependencies, ReconcileContext

_OWNED = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)


def tidb_cluster_controller(
    runtime: Runtime,
    clusters: Informers,
    owned: Informers,
    deps: Dependencies,
    commands: Commands,
    *,
    others: OtherOperators | None = None,
) -> Controller:
    """Register handlers and return the controller, which is not started.

    `clusters` watches the custom resources, `owned` the objects created for them. `commands` holds the state of their
    pods' commands, and `others` detects other operators.
    """

    def conditions_of(ctx: ReconcileContext, now: datetime) -> Mapping[str, ConditionValue]:
        return conditions.conditions(ctx, now, not_done(commands, ctx.owner, deps.listers.pods))

    lister = clusters.lister_for(TIDB_CLUSTERS)
    metrics = ClusterMetrics(
        runtime.registry,
        lister,
        runtime.clock,
        partial(runtime.key_locks.fence_of, TIDB_CLUSTERS),
        others=others,
        certificates=deps.certificates,
        pods=deps.listers.pods,
    )
    kind = replace(TIDB_CLUSTER, conditions=others.telling(conditions_of) if others else conditions_of)
    controller = kind_controller(runtime, kind, clusters, deps, metrics)
    enqueue = controller.enqueue
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(events.of_rivals(lister, enqueue), NO_RESYNC)
    clusters.informer_for(RESTORES).add_event_handler(
        events.of_restores(lister, enqueue, deps.settings.references), NO_RESYNC
    )
    elsewhere = References(_joined_elsewhere)
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(elsewhere.noting(), NO_RESYNC)
    clusters.informer_for(TIDB_CLUSTERS).add_event_handler(elsewhere.enqueueing(enqueue, consents_differ), NO_RESYNC)
    for resource in _OWNED:
        owned.informer_for(resource).add_event_handler(events.of_owned(lister, enqueue), NO_RESYNC)
    owned.informer_for(PODS).add_event_handler(events.of_pods(lister, enqueue), NO_RESYNC)
    owned.informer_for(PERSISTENT_VOLUME_CLAIMS).add_event_handler(events.of_claims(lister, enqueue), NO_RESYNC)
    return controller


class _Joined(msgspec.Struct, frozen=True, rename="camel"):
    cluster: TidbClusterRef | None = None
    pd_addresses: list[str] = []


class _TidbCluster(msgspec.Struct, frozen=True):
    spec: _Joined


def _joined_elsewhere(cluster: Object) -> list[str]:
    """The keys of the TidbClusters in other namespaces that `cluster` joins, which must consent."""
    try:
        spec = cluster.decode_as(_TidbCluster).spec
    except msgspec.ValidationError:
        return []  # the operator does nothing for a cluster that it cannot decode
    named = clusters_of_addresses(spec.pd_addresses)
    if spec.cluster is not None:
        named.append((spec.cluster.namespace, spec.cluster.name))
    return [f"{namespace}/{name}" for namespace, name in named if namespace not in ("", cluster.metadata.namespace)]
