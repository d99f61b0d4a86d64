"""The kind TidbDashboard and its stages (other-resources.md 4)."""

from apis.dashboards import TidbDashboard
from apis.validation.dashboards import validate_dashboard
from controllers.consent import apply_data, granted_by, marked
from controllers.owned_deletion import prune
from controllers.owned_volumes import keep_volumes
from controllers.owned_workloads import apply_service, apply_stateful_set, observe
from controllers.simple_kind import Reconcile, SimpleKind
from controllers.stages import Stage
from controllers.status_fields import STATUS_FIELDS
from controllers.target_cluster import certificate, listed_cluster, listed_clusters
from controllers.unheeded import of_kind
from kube.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
)
from member import dashboard
from member.labels import TIDB_OPERATOR
from member.outcome import Outcome, Waiting


def _make(ctx: Reconcile[TidbDashboard]) -> Outcome:
    """Apply copies of certificates, the Service and the StatefulSet, once the TidbCluster exists."""
    tc = listed_cluster(ctx, ctx.model.spec.clusters, (STATEFUL_SETS, SECRETS))
    if isinstance(tc, Waiting):
        return tc
    granted = granted_by(ctx, tc)
    copies = dashboard.certificates(ctx.model, tc).values()
    for copy, source in copies:
        data = certificate(ctx, tc.metadata.namespace, source)
        if isinstance(data, Waiting):
            return data
        metadata = {"name": copy, "labels": dashboard.own_labels(ctx.model)}
        apply_data(ctx, SECRETS, {"metadata": metadata, "type": "Opaque", "data": data}, granted)
    apply_service(ctx, dashboard.service(ctx.model))
    outcome = apply_stateful_set(ctx, marked(dashboard.stateful_set(ctx.model, tc), granted))
    prune(ctx, SECRETS, {copy for copy, _ in copies})
    return outcome


def _volumes(ctx: Reconcile[TidbDashboard]) -> Outcome:
    return keep_volumes(ctx, dashboard.own_labels(ctx.model), ctx.model.spec.pv_reclaim_policy or "Retain")


def _observe(ctx: Reconcile[TidbDashboard]) -> Outcome:
    """Update the status, even if earlier stages failed; v1.6 does not after an error."""
    return observe(ctx, ctx.model.status, dashboard.stateful_set_name(ctx.model), ctx.outcomes.get("objects"))


TIDB_DASHBOARD = SimpleKind(
    resource=TIDB_DASHBOARDS,
    model=TidbDashboard,
    stages=[Stage("objects", _make), Stage("volumes", _volumes), Stage("pod", _observe)],
    owns=[SECRETS, SERVICES, STATEFUL_SETS],
    reads=[PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES],
    refers={TIDB_CLUSTERS: listed_clusters},
    managed_by=TIDB_OPERATOR,
    observe=_observe,
    problems=validate_dashboard,
    further_conditions=of_kind,
    status_fields=STATUS_FIELDS,
)
