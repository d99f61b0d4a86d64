"""The kind TidbNGMonitoring and its stages (other-resources.md 5)."""

from collections.abc import Mapping, Sequence

from apis.cluster import SETTINGS_OVERRIDDEN
from apis.ng_monitorings import TidbNGMonitoring
from apis.problem import InvalidField, Problem
from apis.tidbcluster import TidbCluster
from apis.validation.dashboards import validate_ng_monitoring
from controllers.conditions import ConditionValue
from controllers.consent import apply_data, granted_by, marked
from controllers.owned_volumes import keep_volumes
from controllers.owned_workloads import apply_service, apply_stateful_set, observe
from controllers.simple_kind import Reconcile, SimpleKind
from controllers.stages import Stage
from controllers.status_fields import STATUS_FIELDS
from controllers.target_cluster import certificate, listed_cluster, listed_clusters
from controllers.unheeded import of_kind, reported
from kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_NG_MONITORINGS,
)
from member.labels import START_SCRIPT_OPTIONS, TIDB_OPERATOR, with_annotation
from member.ng_monitoring import desired
from member.objects.config_map import noted_options
from member.outcome import Outcome, Refused, Waiting


def _make(ctx: Reconcile[TidbNGMonitoring]) -> Outcome:
    """Apply certificates, the Service, the ConfigMap and the StatefulSet, once the TidbCluster exists."""
    tc = listed_cluster(ctx, ctx.model.spec.clusters, (STATEFUL_SETS, SECRETS))
    if isinstance(tc, Waiting):
        return tc
    granted = granted_by(ctx, tc)
    source = desired.source_secret(tc)
    data = certificate(ctx, tc.metadata.namespace, source) if source else {}
    if isinstance(data, Waiting):
        return data
    apply_data(ctx, SECRETS, desired.certificates(ctx.model, tc, data), granted)
    if ctx.model.spec.paused:
        return Refused("Paused", "Paused: edits wait. Resume: set spec.paused to false.")
    apply_service(ctx, desired.service(ctx.model))
    made = marked(desired.stateful_set(ctx.model, tc, _config_map(ctx, tc)), granted)
    options = noted_options(desired.script_options(ctx.model, tc))
    return apply_stateful_set(ctx, with_annotation(made, START_SCRIPT_OPTIONS, options))


def _config_map(ctx: Reconcile[TidbNGMonitoring], tc: TidbCluster) -> str:
    """Apply the desired ConfigMap; return its name, which depends on the configuration."""
    live = ctx.cached(STATEFUL_SETS, desired.object_name(ctx.model))
    volumes = (live.decode()["spec"]["template"]["spec"].get("volumes") or ()) if live else ()
    in_use_name = next((volume["configMap"]["name"] for volume in volumes if volume["name"] == "config"), "")
    in_use = ctx.cached(CONFIG_MAPS, in_use_name) if in_use_name else None
    choice = desired.choose(ctx.model, tc, in_use_name, in_use.decode() if in_use else None)
    ctx.apply(CONFIG_MAPS, desired.config_map(ctx.model, choice))
    return choice.name


def _volumes(ctx: Reconcile[TidbNGMonitoring]) -> Outcome:
    return keep_volumes(ctx, desired.own_labels(ctx.model), ctx.model.spec.pv_reclaim_policy or "Retain")


def _observe(ctx: Reconcile[TidbNGMonitoring]) -> Outcome:
    """Update the status, even if earlier stages failed."""
    return observe(ctx, ctx.model.status.ng_monitoring, desired.object_name(ctx.model), ctx.outcomes.get("objects"))


def _unheeded(ctx: Reconcile[TidbNGMonitoring]) -> Mapping[str, ConditionValue]:
    """The conditions that name fields and settings without effect."""
    recorder = ctx.owned.runtime.recorder
    return {**of_kind(ctx), **reported(ctx.owner, recorder, SETTINGS_OVERRIDDEN, overridden(ctx.model))}


def overridden(model: TidbNGMonitoring) -> Sequence[Problem]:
    """The settings without effect; none if the configuration cannot be read, which `validate_ng_monitoring` reports."""
    try:
        return desired.overridden(model)
    except InvalidField:
        return []


TIDB_NG_MONITORING = SimpleKind(
    resource=TIDB_NG_MONITORINGS,
    model=TidbNGMonitoring,
    stages=[Stage("objects", _make), Stage("volumes", _volumes), Stage("pod", _observe)],
    owns=[SECRETS, SERVICES, CONFIG_MAPS, STATEFUL_SETS],
    reads=[PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES],
    refers={TIDB_CLUSTERS: listed_clusters},
    managed_by=TIDB_OPERATOR,
    observe=_observe,
    problems=validate_ng_monitoring,
    further_conditions=_unheeded,
    status_fields=STATUS_FIELDS,
)
