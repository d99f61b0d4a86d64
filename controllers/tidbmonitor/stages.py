"""The stages of a reconcile of a TidbMonitor (other-resources.md 3.2)."""

from apis.monitors import TidbMonitor
from apis.problem import InvalidField
from controllers.cluster_etcd import EtcdOf
from controllers.consent import apply_data
from controllers.owned_deletion import prune
from controllers.owned_volumes import keep_volumes
from controllers.owned_workloads import apply_service, apply_stateful_set, bring_to_ready
from controllers.simple_kind import Reconcile
from controllers.stages import Stage
from controllers.tidbmonitor import rights
from controllers.tidbmonitor.migration import migrate
from controllers.tidbmonitor.targets import find_clusters
from dataplane import topology
from dataplane.errors import DataPlaneError
from kube.objects import Json, Object
from kube.resources import (
    CONFIG_MAPS,
    INGRESSES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    TIDB_MONITORS,
    Resource,
)
from member.apply.last_applied import applied, stamped, template_change
from member.monitor import grafana, objects
from member.monitor.containers import PROMETHEUS_PORT
from member.monitor.naming import FINALIZER, Inputs, base_labels, monitor_name, service_name
from member.outcome import Done, NotDone, Outcome

Monitor = Reconcile[TidbMonitor]

PRUNED = (INGRESSES, STATEFUL_SETS, SERVICES, CONFIG_MAPS, SECRETS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS)
"""The resources whose unwanted objects are deleted; v1.6 leaves them."""


def _protect(ctx: Monitor) -> Outcome:
    """Add the finalizer, which keeps a deleted monitor until its cluster-scoped objects are deleted."""
    ctx.owner = ctx.owned.runtime.applier.add_finalizer(TIDB_MONITORS, ctx.owner, FINALIZER)
    return Done()


def _rights(ctx: Monitor) -> Outcome:
    if _inputs(ctx) is None:
        return Done()
    refused: Outcome = Done()
    on_openshift = ctx.owned.runtime.applier.ever_serves(objects.SECURITY_CONTEXT_CONSTRAINTS)
    for resource, desired in objects.rights(ctx.model, on_openshift=on_openshift):
        if not resource.namespaced:
            answer = rights.apply_cluster_scoped(ctx, resource, desired)
            refused = answer if isinstance(answer, NotDone) else refused
        else:
            ctx.apply(resource, desired)
    return refused


def _sight(ctx: Monitor) -> Outcome:
    """Say whether Prometheus finds the pods of what it monitors; the user's own configuration may find them itself."""
    inputs = _inputs(ctx)
    if inputs is None or inputs.given_config is not None:
        return Done()
    return rights.await_sight(ctx, [*inputs.clusters, *inputs.dm_clusters])


def _services(ctx: Monitor) -> Outcome:
    if _inputs(ctx) is not None:
        for _, desired in objects.reached_by(ctx.model):
            apply_service(ctx, desired)
    return Done()


def _configuration(ctx: Monitor) -> Outcome:
    if (inputs := _inputs(ctx)) is not None:
        for resource, desired in objects.configured_by(ctx.model, inputs):
            apply_data(ctx, resource, desired, inputs.granted)
    return Done()


def _stateful_sets(ctx: Monitor) -> Outcome:
    """Apply the StatefulSets of all shards, and wait until they are Ready."""
    inputs, answers = _inputs(ctx), []
    if inputs is None or ctx.outcomes.get("migration") not in (None, Done()):
        return Done()
    as_running = objects.run_by(ctx.model, inputs.as_running())
    for (_, desired), (_, kept) in zip(objects.run_by(ctx.model, inputs), as_running, strict=True):
        answers.append(apply_stateful_set(ctx, _with_first_cluster(ctx, desired, kept), "spec.persistent"))
    answers += [bring_to_ready(ctx, monitor_name(ctx.model, shard)) for shard in _shards(ctx)]
    unfinished = [answer for answer in answers if not isinstance(answer, Done) or answer.reason != Done().reason]
    return next((outcome for outcome in unfinished if isinstance(outcome, NotDone)), next(iter(unfinished), Done()))


def _with_first_cluster(ctx: Monitor, desired: Json, kept: Json) -> Json:
    """`kept`, with the first cluster of the running pods, if nothing else differs: that alone needs no restart."""
    cached = ctx.cached(STATEFUL_SETS, desired["metadata"]["name"])
    return kept if cached is None or template_change(cached.decode(), kept) is None else desired


def _volumes(ctx: Monitor) -> Outcome:
    """Set the reclaim policy of the shards' volumes."""
    answer: Outcome = Done()
    if ctx.model.spec.persistent:
        for shard in _shards(ctx):
            answer = keep_volumes(ctx, base_labels(ctx.model, shard), ctx.model.spec.pv_reclaim_policy or "Retain")
    return answer


def _ingresses(ctx: Monitor) -> Outcome:
    if _inputs(ctx) is not None:
        for resource, desired in objects.entered_by(ctx.model):
            cached = ctx.cached(resource, desired["metadata"]["name"])
            live = cached.decode() if cached is not None else None
            ctx.apply(resource, stamped(desired, live), applied=applied(live) if live is not None else None)
    return Done()


def _prune(ctx: Monitor) -> Outcome:
    """Delete unwanted objects; none while the desired ones are unknown."""
    inputs = _inputs(ctx)
    if inputs is None or any(isinstance(outcome, NotDone) for outcome in _replacements(ctx)):
        return Done()
    wanted: dict[Resource, set[str]] = {}
    for resource, desired in objects.everything(ctx.model, inputs):
        wanted.setdefault(resource, set()).add(desired["metadata"]["name"])
    for resource in PRUNED:
        prune(ctx, resource, wanted.get(resource, set()))
    if not ctx.model.spec.cluster_scoped:
        rights.withdraw_unwanted(ctx)
    return Done()


def _replacements(ctx: Monitor) -> list[Outcome]:
    """The outcomes of the stages that create the replacements of unwanted objects."""
    return [ctx.outcomes[name] for name in ("rights", "services", "configuration", "ingresses")]


def observe(ctx: Monitor) -> Outcome:
    """Update the status from the StatefulSet of the first shard, as in v1.6."""
    cached = ctx.cached(STATEFUL_SETS, monitor_name(ctx.model))
    is_own = cached is not None and ctx.controls(cached)
    ctx.model.status.stateful_set = cached.decode().get("status") if cached is not None and is_own else None
    return Done()


def _inputs(ctx: Monitor) -> Inputs | None:
    found = ctx.found
    assert found is None or isinstance(found, Inputs)
    return found


def _shards(ctx: Monitor) -> range:
    return range(ctx.model.spec.shards or 1)


STAGES = (
    Stage("finalizer", _protect),
    Stage("clusters", find_clusters),
    Stage("rights", _rights),
    Stage("sight", _sight),
    Stage("services", _services),
    Stage("configuration", _configuration),
    Stage("migration", migrate),
    Stage("stateful_sets", _stateful_sets),
    Stage("volumes", _volumes),
    Stage("ingresses", _ingresses),
    Stage("unwanted", _prune),
    Stage("status", observe),
)
"""The stages in their order. A stage that waits does not stop later ones."""


def dashboard_addresses(etcd_of: EtcdOf) -> Stage[Reconcile[TidbMonitor]]:
    """The stage that writes the addresses of the monitor into PD, for TiDB Dashboard (other-resources.md 3.8).

    It uses the etcd clients of `etcd_of`. The next resync retries clusters that do not answer.
    """

    def act(ctx: Reconcile[TidbMonitor]) -> Outcome:
        clusters = _clusters(ctx)
        failed = [
            f"{cluster.key} ({error})" for cluster in clusters if (error := _write_addresses(ctx, etcd_of, cluster))
        ]
        return Done(f"TiDB Dashboard does not have the monitor's addresses yet: {', '.join(failed)}" if failed else "")

    return Stage("addresses", act)


def _clusters(ctx: Reconcile[TidbMonitor]) -> list[Object]:
    """The clusters that the monitor may write to and that have a PD of their own that is not suspended."""
    targets = ctx.found.clusters if isinstance(ctx.found, Inputs) else ()
    there = (ctx.referred(TIDB_CLUSTERS, target.namespace, target.name) for target in targets if not target.is_kept)
    return [cluster for cluster in there if cluster is not None and _has_pd(cluster)]


def _has_pd(cluster: Object) -> bool:
    body = cluster.decode()
    status = (body.get("status") or {}).get("pd") or {}
    return bool((body.get("spec") or {}).get("pd")) and status.get("phase") != "Suspend" and bool(status.get("members"))


def _write_addresses(ctx: Reconcile[TidbMonitor], etcd_of: EtcdOf, cluster: Object) -> str:
    """Write the addresses into a cluster; return the error, empty if there is none."""
    try:
        topology.publish(etcd_of(cluster), _addresses(ctx.model))
    except (InvalidField, DataPlaneError) as error:
        return str(error)
    return ""


def _addresses(monitor: TidbMonitor) -> dict[str, tuple[str, int]]:
    found = {"prometheus": (_host(monitor, "prometheus"), PROMETHEUS_PORT)}
    if monitor.spec.grafana is not None:
        found["grafana"] = (_host(monitor, "grafana"), grafana.PORT)
    return found


def _host(monitor: TidbMonitor, of: str) -> str:
    return f"{service_name(monitor, of)}.{monitor.metadata.namespace}.svc"
