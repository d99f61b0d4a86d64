"""The stage `addresses`: it writes the addresses of the monitor into PD for TiDB Dashboard (other-resources.md 3.8)."""

from apis.monitors import TidbMonitor
from apis.problem import InvalidField
from controllers.cluster_etcd import EtcdOf
from controllers.simple_kind import Reconcile
from controllers.stages import Stage
from dataplane import topology
from dataplane.errors import DataPlaneError
from kube.objects import Object
from kube.resources import TIDB_CLUSTERS
from member.monitor import grafana
from member.monitor.containers import PROMETHEUS_PORT
from member.monitor.inputs import Inputs
from member.monitor.naming import service_name
from member.outcome import Done, Outcome


def telling(etcd_of: EtcdOf) -> Stage[Reconcile[TidbMonitor]]:
    """The stage, which uses the etcd clients of `etcd_of`. The next resync retries clusters that do not answer."""

    def act(ctx: Reconcile[TidbMonitor]) -> Outcome:
        untold = [f"{cluster.key} ({error})" for cluster in _clusters(ctx) if (error := _tell(ctx, etcd_of, cluster))]
        return Done(f"TiDB Dashboard is not told yet where the monitor is: {', '.join(untold)}" if untold else "")

    return Stage("addresses", act)


def _clusters(ctx: Reconcile[TidbMonitor]) -> list[Object]:
    """The clusters that the monitor may write to and that have a PD of their own that is not suspended."""
    targets = ctx.found.clusters if isinstance(ctx.found, Inputs) else ()
    there = (ctx.referred(TIDB_CLUSTERS, each.namespace, each.name) for each in targets if not each.is_kept)
    return [cluster for cluster in there if cluster is not None and _has_pd(cluster)]


def _has_pd(cluster: Object) -> bool:
    body = cluster.decode()
    status = (body.get("status") or {}).get("pd") or {}
    return bool((body.get("spec") or {}).get("pd")) and status.get("phase") != "Suspend" and bool(status.get("members"))


def _tell(ctx: Reconcile[TidbMonitor], etcd_of: EtcdOf, cluster: Object) -> str:
    """Write the addresses into a cluster; return the error, empty if there is none."""
    try:
        topology.tell(etcd_of(cluster), _addresses(ctx.model))
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
