"""Defaults of a TidbMonitor, in memory only (defaults-and-validation.md 2.4)."""

from msgspec import structs

from apis.monitors import DMMonitorSpec, TidbMonitor
from apis.shared import TidbClusterRef


def with_monitor_defaults(monitor: TidbMonitor) -> TidbMonitor:
    """A TidbMonitor with every default in its spec; `monitor` is unchanged."""
    spec, namespace = monitor.spec, monitor.metadata.namespace
    dm = spec.dm
    filled = structs.replace(
        spec,
        clusters=_in(spec.clusters, namespace),
        dm=dm and DMMonitorSpec(clusters=_in(dm.clusters, namespace), initializer=dm.initializer),
        pv_reclaim_policy=spec.pv_reclaim_policy or "Retain",
        timezone=spec.timezone or "UTC",
        replicas=1 if spec.replicas is None else spec.replicas,
        shards=max(spec.shards or 1, 1),
    )
    return structs.replace(monitor, spec=filled)


def _in(references: list[TidbClusterRef], namespace: str) -> list[TidbClusterRef]:
    return [structs.replace(each, namespace=each.namespace or namespace) for each in references]
