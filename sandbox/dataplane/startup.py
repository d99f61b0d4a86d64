"""Why a server of the data plane ends right at its start: its configuration or its certificates."""

import tomllib
from collections.abc import Mapping

from sandbox.dataplane.addresses import speaks_tls
from sandbox.dataplane.pd.durations import seconds
from sandbox.dataplane.processes import Launch

_LEVELS = ("debug", "info", "warn", "warning", "error", "fatal", "critical", "trace", "off", "")
_TABLES = {
    "pd": ("log", "schedule", "replication", "security", "pd-server", "dashboard", "metric"),
    "tikv": ("log", "storage", "raftstore", "server", "coprocessor", "rocksdb", "raftdb", "security", "readpool", "gc"),
    "tidb": ("log", "security", "status", "performance", "tikv-client", "instance", "pessimistic-txn", "experimental"),
}
_NUMBERS = {
    "pd": ("lease", "replication.max-replicas", "schedule.leader-schedule-limit", "schedule.region-schedule-limit"),
    "tikv": ("server.grpc-concurrency", "raftstore.store-pool-size", "storage.scheduler-worker-pool-size"),
    "tidb": ("port", "token-limit", "performance.max-procs", "status.status-port"),
}
_DURATIONS = {"pd": ("schedule.max-store-down-time",), "tikv": (), "tidb": ()}
_CERTIFICATE_FILES = ("ca.crt", "tls.crt", "tls.key")


def refusal(launch: Launch, component: str) -> str:
    """What the server says before it exits with code 1; empty when it starts. `component` is pd, tikv or tidb."""
    try:
        _check(launch.files.get(f"/etc/{component}/{component}.toml", ""), component)
    except ValueError as error:
        return f"invalid configuration file: {error}"
    return _missing_certificate(launch, component)


def _check(text: str, component: str) -> None:
    """Raises ValueError where the real server would refuse. Unknown items are only warned of, there as here."""
    tree = tomllib.loads(text)
    for name in _TABLES[component]:
        if not isinstance(tree.get(name, {}), dict):
            raise ValueError(f"invalid type for key {name!r}: expected a table")
    for path in _NUMBERS[component]:
        value = _at(tree, path)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError(f"invalid type for key {path!r}: expected an integer, not {value!r}")
    for path in _DURATIONS[component]:
        value = _at(tree, path)
        if value is not None:
            seconds(str(value))
    level = _at(tree, "log.level")
    if level is not None and (not isinstance(level, str) or level.lower() not in _LEVELS):
        raise ValueError(f"unknown log level {level!r}")


def _at(tree: Mapping[str, object], path: str) -> object:
    value: object = tree
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _missing_certificate(launch: Launch, component: str) -> str:
    """A server that speaks TLS needs all three files, each of them PEM."""
    if not speaks_tls(launch):
        return ""
    for name in _CERTIFICATE_FILES:
        path = f"/var/lib/{component}-tls/{name}"
        if path not in launch.files:
            return f"open {path}: no such file or directory"
        if "-----BEGIN" not in launch.files[path]:
            return f"{path}: tls: failed to find any PEM data in certificate input"
    return ""
