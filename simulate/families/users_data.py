"""Users' data beside regions: replicated tables, and tables with TiFlash replicas."""

from simulate.engine.plan import World
from simulate.engine.worlds import CLUSTERS, KEY

_AT = 0.5
"""Seconds after a plan begins."""


def changefeed() -> World:
    """Tables that TiCDC replicates until the end."""
    return World(at=_AT, verb="changefeed", arguments={"cluster": KEY, "tables": 12}, seconds=0.0)


def analytic_table(replicas: int, seconds: float = 0.0) -> World:
    """A table with TiFlash replicas, for some seconds, or until the end with 0."""
    return World(at=_AT, verb="tiflash_replicas", arguments={"cluster": KEY, "count": replicas}, seconds=seconds)


def of_all_components(cluster: str) -> tuple[World, ...]:
    """Data in each component of a cluster that can hold some."""
    spec = CLUSTERS[cluster]()["spec"]
    return (*[changefeed()] * ("ticdc" in spec), *[analytic_table(1)] * ("tiflash" in spec))
