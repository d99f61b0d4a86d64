"""The configuration of TiFlash's server, and of the proxy beside it (objects.md 6.7).

Both are templates: the init container replaces `POD_NUM` and, in clusters across Kubernetes clusters, `PD_ADDR`. The
keys are defaults that the user's values override, except for the paths of certificates.
"""

from collections.abc import Mapping

from apis import config, images
from apis.accessor import component
from apis.component_specs import TiFlashSpec
from apis.config_schema import TIFLASH_PROXY
from apis.identity import is_heterogeneous, tls_enabled
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from dataplane.addresses import (
    PD_CLIENT_PORT,
    TIDB_STATUS_PORT,
    TIFLASH_METRICS_PORT,
    TIFLASH_PROXY_PORT,
    TIFLASH_SERVICE_PORT,
    TIFLASH_STATUS_PORT,
)
from member.labels import TIFLASH_710_KEEP_PORTS, TIFLASH_MOUNT_CONFIG_MAP
from member.naming import member_name, peer_service, referenced_cluster
from member.objects import volumes
from member.startscript import options

SERVER_TEMPLATE, PROXY_TEMPLATE = "config_templ.toml", "proxy_templ.toml"
POD_NUMBER, PD_ADDRESS = "POD_NUM", "PD_ADDR"
TLS_VOLUME = "tiflash-tls"

LOGS: Mapping[str, tuple[str, str]] = {
    "serverlog": ("logger.log", "/data0/logs/server.log"),
    "errorlog": ("logger.errorlog", "/data0/logs/error.log"),
    "clusterlog": ("flash.flash_cluster.log", "/data0/logs/flash_cluster_manager.log"),
}
"""The sidecars that print a log file: the setting with its path, and the default path."""

_TCP, _HTTP = 9000, 8123
_SEVERAL_DISKS, _NO_OWN_PORTS = "v5.4.0", "v7.1.0"
"""The first version that supports several data directories, and the first that opens no ports of its own."""


def is_config_mounted(tc: TidbCluster) -> bool:
    """True if TiFlash reads the ConfigMap directly, and gets pod-specific settings from flags."""
    spec = tc.spec.tiflash
    return spec is not None and spec.annotations.get(TIFLASH_MOUNT_CONFIG_MAP) == "true"


def server_tables(tc: TidbCluster) -> Table:
    """The configuration of the server. Raises InvalidField for values that validation rejects."""
    tables, version = component(tc, "tiflash").config_tables(), component(tc, "tiflash").version
    own_ports = not images.at_least(version, _NO_OWN_PORTS) or TIFLASH_710_KEEP_PORTS in tc.metadata.annotations
    if images.at_least(version, _SEVERAL_DISKS):
        _add(tables, _common(tc, mounted=is_config_mounted(tc)) | _directories(tc, tables))
        secured = {"tcp_port_secure": _TCP, "https_port": _HTTP}
        _add(tables, (secured if tls_enabled(tc) else {"tcp_port": _TCP, "http_port": _HTTP}) if own_ports else {})
        if tls_enabled(tc):
            _drop(tables, "tcp_port", "http_port")
    else:
        _add(tables, _common(tc, mounted=False) | _before_several_disks(tc))
        _drop(tables, *(("tcp_port", "http_port") if tls_enabled(tc) else ("tcp_port_secure", "https_port")))
    if tls_enabled(tc):
        _put_certificates(tables, ("ca_path", "cert_path", "key_path"))
    return tables


def proxy_tables(tc: TidbCluster) -> Table:
    """The configuration of the proxy. Raises InvalidField for values that validation rejects."""
    spec = tc.spec.tiflash
    assert spec is not None  # `component` has checked it
    tables = config.tables(spec.config.proxy if spec.config else None, TIFLASH_PROXY, "spec.tiflash.config.proxy")
    _add(tables, {"log-level": "info", "server.status-addr": f"{_listen(tc)}:{TIFLASH_STATUS_PORT}"})
    if not is_config_mounted(tc) or not images.at_least(component(tc, "tiflash").version, _SEVERAL_DISKS):
        own = {"engine-addr": TIFLASH_SERVICE_PORT, "advertise-status-addr": TIFLASH_STATUS_PORT}
        _add(tables, {f"server.{key}": f"{_own_host(tc)}:{port}" for key, port in own.items()})
    if tls_enabled(tc):
        _put_certificates(tables, ("ca-path", "cert-path", "key-path"))
        names = config.get(component(tc, "tiflash").config_tables(), "security.cert_allowed_cn")
        if names is not None:
            config.put_if_absent(tables, "security.cert-allowed-cn", names)
    return tables


def log_file(tc: TidbCluster, sidecar: str) -> str:
    """The log file that a sidecar prints."""
    path, default = LOGS[sidecar]
    written: str | None = config.get(component(tc, "tiflash").config_tables(), path)
    return default if written is None else written


def _common(tc: TidbCluster, *, mounted: bool) -> dict[str, object]:
    """The defaults of all versions. `mounted` is True if flags provide the pod-specific settings."""
    own = {
        "flash.service_addr": f"{_listen(tc)}:{TIFLASH_SERVICE_PORT}",
        "flash.proxy.advertise-addr": f"{_own_host(tc)}:{TIFLASH_PROXY_PORT}",
    }
    return {
        "tmp_path": "/data0/tmp",
        "flash.tidb_status_addr": _tidb_status(tc),
        "flash.proxy.addr": f"{_listen(tc)}:{TIFLASH_PROXY_PORT}",
        "flash.proxy.data-dir": "/data0/proxy",
        "flash.proxy.config": f"/etc/tiflash/{PROXY_TEMPLATE}" if mounted else "/data0/proxy.toml",
        "raft.pd_addr": _pd(tc),
        **dict(LOGS.values()),
        **({} if mounted else own),
        **({"listen_host": "::", "status.metrics_port": TIFLASH_METRICS_PORT} if tc.spec.prefer_ipv6 else {}),
    }


def _directories(tc: TidbCluster, written: Table) -> dict[str, object]:
    """The data directories, on every disk, unless the user sets them with the keys of earlier versions."""
    found: dict[str, object] = {}
    if config.get(written, "path") is None:
        found["storage.main.dir"] = _databases(tc)
    if config.get(written, "raft.kvstore_path") is None:
        found["storage.raft.dir"] = ["/data0/kvstore"]
    return found


def _databases(tc: TidbCluster) -> list[str]:
    spec = component(tc, "tiflash").spec
    assert isinstance(spec, TiFlashSpec)
    return [f"/{volumes.storage_claim_name(index)}/db" for index in range(len(spec.storage_claims))]


def _before_several_disks(tc: TidbCluster) -> dict[str, object]:
    """The settings that v5.3 and earlier require."""
    readers = ("readonly", "default")
    users = {"quota": "default", "networks.ip": "::/0", "password": ""}
    return {
        "path": ",".join(_databases(tc)),
        "display_name": "TiFlash",
        "default_profile": "default",
        "path_realtime_mode": False,
        "mark_cache_size": 5368709120,
        "minmax_index_cache_size": 5368709120,
        "listen_host": "::" if tc.spec.prefer_ipv6 else "0.0.0.0",
        "tcp_port": _TCP,
        "tcp_port_secure": _TCP,
        "http_port": _HTTP,
        "https_port": _HTTP,
        "interserver_http_port": 9009,
        "flash.overlap_threshold": 0.6,
        "flash.compact_log_min_period": 200,
        "flash.flash_cluster.cluster_manager_path": "/tiflash/flash_cluster_manager",
        "flash.flash_cluster.refresh_interval": 20,
        "flash.flash_cluster.update_rule_interval": 10,
        "flash.flash_cluster.master_ttl": 60,
        "logger.size": "100M",
        "logger.level": "information",
        "logger.count": 10,
        "application.runAsDaemon": True,
        "raft.kvstore_path": "/data0/kvstore",
        "raft.storage_engine": "dt",
        "status.metrics_port": TIFLASH_METRICS_PORT,
        "quotas.default.interval.duration": 3600,
        **{f"quotas.default.interval.{key}": 0 for key in _UNLIMITED},
        **{f"users.{user}.profile": user for user in readers},
        **{f"users.{user}.{key}": value for user in readers for key, value in users.items()},
        "profiles.readonly.readonly": 1,
        "profiles.default.max_memory_usage": 10000000000,
        "profiles.default.load_balancing": "random",
        "profiles.default.use_uncompressed_cache": 0,
    }


_UNLIMITED = ("queries", "errors", "result_rows", "read_rows", "execution_time")


def _listen(tc: TidbCluster) -> str:
    return "[::]" if tc.spec.prefer_ipv6 else "0.0.0.0"


def _own_host(tc: TidbCluster) -> str:
    """The host of a pod; its init container replaces the pod number."""
    service, suffix = peer_service(tc, "tiflash"), f"svc{_dotted(tc.spec.cluster_domain)}"
    return f"{member_name(tc, 'tiflash')}-{POD_NUMBER}.{service}.{tc.metadata.namespace}.{suffix}"


def _pd(tc: TidbCluster) -> str:
    if options.preferred_pd(tc, v2=options.is_v2(tc)):
        return ",".join(tc.spec.pd_addresses)
    if tc.spec.across_k8s:
        return PD_ADDRESS
    reference = referenced_cluster(tc)
    if reference is None:
        return f"{member_name(tc, 'pd')}.{tc.metadata.namespace}.svc:{PD_CLIENT_PORT}"
    namespace = reference.namespace or tc.metadata.namespace
    return f"{reference.name}-pd.{namespace}.svc{_dotted(reference.cluster_domain)}:{PD_CLIENT_PORT}"


def _tidb_status(tc: TidbCluster) -> str:
    """Where TiFlash reads the schema: the cluster's own TiDB, or the TiDB of the cluster that it joins."""
    reference = tc.spec.cluster if tc.spec.tidb is None and is_heterogeneous(tc) else None
    if reference is None:
        return f"{member_name(tc, 'tidb')}.{tc.metadata.namespace}.svc:{TIDB_STATUS_PORT}"
    service = f"{reference.name}-tidb{'-peer' if tc.spec.across_k8s else ''}"
    namespace = reference.namespace or tc.metadata.namespace
    return f"{service}.{namespace}.svc{_dotted(reference.cluster_domain)}:{TIDB_STATUS_PORT}"


def _dotted(domain: str) -> str:
    return f".{domain}" if domain else ""


def _add(tables: Table, defaults: Mapping[str, object]) -> None:
    for path, value in defaults.items():
        config.put_if_absent(tables, path, value)


def _drop(tables: Table, *paths: str) -> None:
    for path in paths:
        config.drop(tables, path)


def _put_certificates(tables: Table, keys: tuple[str, str, str]) -> None:
    for key, path in zip(keys, volumes.certificate_files(TLS_VOLUME), strict=True):
        config.put(tables, f"security.{key}", path)
