"""Configurations: readable, of the form the operator needs, TiFlash's paths (defaults-and-validation.md 3.3, 7)."""

from collections.abc import Iterator

from apis.accessor import Component
from apis.config import field_of, get, tables
from apis.problem import InvalidField, Problem
from apis.shared import Config
from apis.tidbcluster import DiscoverySpec, TiFlashSpec
from apis.toml import Table

_TABLES = {
    "pd": ("security", "dashboard"),
    "tso": ("security",),
    "scheduling": ("security",),
    "tikv": ("security",),
    "tidb": ("log", "log.file", "security"),
    "pump": ("security",),
    "ticdc": (),
    "tiproxy": (
        "proxy",
        "security",
        *(f"security.{name}" for name in ("cluster-tls", "sql-tls", "server-tls", "server-http-tls")),
    ),
    "tiflash": (
        "flash",
        "flash.flash_cluster",
        "flash.proxy",
        "logger",
        "raft",
        "security",
        "status",
        "storage",
        "storage.main",
        "storage.raft",
    ),
    "tiflash-proxy": ("security", "server"),
}
"""Where the operator sets keys of its own (objects.md 6.4, 6.7, 9.3)."""

_TIDB_STATUS_PORT = 10080

_TIFLASH_LOGS = ("flash.flash_cluster.log", "flash.proxy.log-file", "logger.log", "logger.errorlog")


def check(component: Component) -> Iterator[Problem]:
    """The text is TOML, tables that the operator writes to are tables, TiFlash's keys make sense."""
    for name, field, written in _configurations(component):
        try:
            read = tables(written, name, field)
        except InvalidField as error:
            yield error.problem
            continue
        yield from _check_tables(read, name, field)
        if name == "tiflash":
            yield from _check_tiflash(read, field)
        if name == "tidb":
            yield from _check_tidb(read, field)


def _configurations(component: Component) -> list[tuple[str, str, Config | None]]:
    """Name, path and content of each configuration: TiFlash has two, Discovery none."""
    spec = component.spec
    if isinstance(spec, DiscoverySpec):
        return []
    own = (component.name, component.config_field, component.config)
    if not isinstance(spec, TiFlashSpec):
        return [own]
    return [own, ("tiflash-proxy", field_of("tiflash-proxy"), spec.config.proxy if spec.config else None)]


def _check_tables(config: Table, name: str, field: str) -> Iterator[Problem]:
    for path in _TABLES[name]:
        value = get(config, path)
        if value is not None and not isinstance(value, dict):
            yield Problem(f"{field}.{path}", value, "must be a table; the operator sets keys in it")


def _check_tidb(config: Table, field: str) -> Iterator[Problem]:
    """Services, probes and the operator reach TiDB's status on one port only (R25)."""
    port = get(config, "status.status-port")
    if port is not None and port != _TIDB_STATUS_PORT:
        message = f"must be {_TIDB_STATUS_PORT}: Services, probes and the operator ask for TiDB's status there"
        yield Problem(f"{field}.status.status-port", port, message)


def _check_tiflash(config: Table, field: str) -> Iterator[Problem]:
    threshold = get(config, "flash.overlap_threshold")
    if threshold is not None and not (isinstance(threshold, float) and 0 <= threshold <= 1):
        yield Problem(f"{field}.flash.overlap_threshold", threshold, "must be a float from 0.0 to 1.0, such as 0.6")
    for path in _TIFLASH_LOGS:
        log = get(config, path)
        if log is not None and not (isinstance(log, str) and log.count("/") >= 2):
            yield Problem(f"{field}.{path}", log, "must be a path with a directory, such as /data0/logs/server.log")
