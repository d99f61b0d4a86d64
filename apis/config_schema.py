"""The known part of each component's configuration file (objects.md 6.1, 6.4, 9.3).

Data of the table in `apis.components`; `apis.config` reads files by it, `apis.validation` checks them by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSchema:
    """One configuration file. Keys are dotted paths.

    `file` is its key in the component's ConfigMap. `tables` are those in which the operator sets keys,
    `set_by_operator` the keys found in a file although the user wrote none, `defaults` what is put in unless the user
    says otherwise. In the object form, `renamed` keys have another name, path by last name in the file, and whole
    numbers of `floats` are floats in the file. `fixed` are the tables of which a running server knows better, each with
    the keys that v1.6 knows in the object form: it leaves out all others.
    """

    file: str = "config-file"
    tables: tuple[str, ...] = ()
    set_by_operator: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    floats: tuple[str, ...] = ()
    fixed: Mapping[str, frozenset[str]] = field(default_factory=dict)


NONE = ConfigSchema()
"""No file, or nothing known about it."""

_TITAN_RATIOS = tuple(
    f"rocksdb.{family}.titan.{ratio}"
    for ratio in ("discardable-ratio", "sample-ratio")
    for family in ("defaultcf", "writecf", "lockcf", "raftcf")
)

_TIKV_FLOATS = (
    "storage.block-cache.high-pri-pool-ratio",
    *_TITAN_RATIOS,
    "raftdb.defaultcf.titan.discardable-ratio",
    "raftdb.defaultcf.titan.sample-ratio",
)

_PD_RENAMED = {
    "auto-compaction-retention-v2": "auto-compaction-retention",
    "tikv-interval": "tick-interval",
    "schedule.schedulers-v2": "schedulers",
}

_PD_FLOATS = ("schedule.tolerant-size-ratio", "schedule.low-space-ratio", "schedule.high-space-ratio")

_PD_FIXED = {
    "schedule": frozenset(
        {
            *("max-snapshot-count", "max-pending-peer-count", "max-merge-region-size", "max-merge-region-keys"),
            *("split-merge-interval", "patrol-region-interval", "max-store-down-time"),
            "hot-region-cache-hits-threshold",
            *(f"{kind}-schedule-limit" for kind in ("leader", "region", "replica", "merge", "hot-region")),
            *("tolerant-size-ratio", "low-space-ratio", "high-space-ratio", "disable-raft-learner"),
            *(f"disable-{what}-replica" for what in ("remove-down", "replace-offline", "make-up", "remove-extra")),
            *("disable-location-replacement", "disable-namespace-relocation"),
            *("enable-one-way-merge", "enable-cross-table-merge", "schedulers", "schedulers-payload"),
        }
    ),
    "replication": frozenset({"max-replicas", "location-labels", "strictly-match-label", "enable-placement-rules"}),
}

PD = ConfigSchema(
    tables=("security", "dashboard"),
    set_by_operator=(
        *(f"security.{key}" for key in ("cacert-path", "cert-path", "key-path")),
        *(f"dashboard.{key}" for key in ("tidb-cacert-path", "tidb-cert-path", "tidb-key-path", "internal-proxy")),
    ),
    renamed=_PD_RENAMED,
    floats=_PD_FLOATS,
    fixed=_PD_FIXED,
)

PD_MICROSERVICE = ConfigSchema(tables=("security",), renamed=_PD_RENAMED, floats=_PD_FLOATS)

TIKV = ConfigSchema(
    tables=("security",),
    set_by_operator=(*(f"security.{key}" for key in ("ca-path", "cert-path", "key-path")), "gc.ratio-threshold"),
    floats=_TIKV_FLOATS,
)

TIDB = ConfigSchema(
    tables=("log", "log.file", "security"),
    set_by_operator=(
        *(f"security.{key}" for key in ("cluster-ssl-ca", "cluster-ssl-cert", "cluster-ssl-key", "auth-token-jwks")),
        *(f"security.{key}" for key in ("ssl-ca", "ssl-cert", "ssl-key")),
        *(f"security.session-token-signing-{key}" for key in ("cert", "key")),
        "log.file.max-backups",
        "initialize-sql-file",
    ),
    defaults={"log.file.max-backups": 3},
    floats=(
        "performance.feedback-probability",
        "performance.pseudo-estimate-ratio",
        "prepared-plan-cache.memory-guard-ratio",
        "opentracing.sampler.param",
        "tikv-client.copr-cache.capacity-mb",
        "tikv-client.copr-cache.admission-max-result-mb",
    ),
)

TIFLASH = ConfigSchema(
    tables=(
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
        "tici",
        "tici.logger",
        "tici.reader-node",
        "tici.s3",
        "tici.storage",
    ),
    floats=("flash.overlap_threshold",),
)

TIFLASH_PROXY = ConfigSchema(tables=("security", "server"), floats=_TIKV_FLOATS)
"""TiFlash's second file, for its proxy."""

TICI_META = ConfigSchema(tables=("tidb-server", "server", "s3"))

TICI_WORKER = ConfigSchema(tables=("server", "s3"))

TICDC = ConfigSchema(renamed={"timezone": "tz", "gcTTL": "gc-ttl", "logLevel": "log-level", "logFile": "log-file"})

PUMP = ConfigSchema(
    file="pump-config",
    tables=("security",),
    set_by_operator=tuple(f"security.{key}" for key in ("ssl-ca", "ssl-cert", "ssl-key")),
)

DM_MASTER = ConfigSchema(set_by_operator=("ssl-ca", "ssl-cert", "ssl-key"), floats=("rpc-rate-limit",))

DM_WORKER = ConfigSchema(set_by_operator=("ssl-ca", "ssl-cert", "ssl-key"))

TIPROXY = ConfigSchema(
    tables=(
        "proxy",
        "security",
        *(f"security.{name}" for name in ("cluster-tls", "sql-tls", "server-tls", "server-http-tls")),
    )
)
