"""TidbClusters for the scripts."""

from typing import Any

import msgspec

from apis.tidbcluster import TidbCluster


def cluster(
    *,
    pd: dict[str, Any] | None = None,
    tikv: dict[str, Any] | None = None,
    tidb: dict[str, Any] | None = None,
    **spec: Any,
) -> TidbCluster:
    """The cluster `demo` in `ns` with all three components; `without_pd` leaves PD out."""
    components: dict[str, Any] = {"tikv": {"replicas": 3} | (tikv or {}), "tidb": {"replicas": 2} | (tidb or {})}
    if not spec.pop("without_pd", False):
        components["pd"] = {"replicas": 3} | (pd or {})
    return msgspec.convert({"metadata": {"name": "demo", "namespace": "ns"}, "spec": components | spec}, TidbCluster)


def v2(*flags: str, **spec: Any) -> TidbCluster:
    """A cluster like `cluster`, with v2 scripts."""
    return cluster(startScriptVersion="v2", startScriptV2FeatureFlags=list(flags), **spec)
