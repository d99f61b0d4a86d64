"""TiFlash's desired objects (objects.md 4.6) and configuration (6.7). Pure functions of a defaulted TidbCluster.

The files of the server, and of the proxy beside it, are templates: the init container replaces `POD_NUM` and, in
clusters across Kubernetes clusters, `PD_ADDR`. The keys are defaults that the user's values override, except for the
paths of certificates.
"""

from collections.abc import Mapping

from msgspec import structs

from apis import config, images, toml
from apis.accessor import component, container_resources, helper_image
from apis.component_specs import TiFlashInitializer, TiFlashSpec
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
from kube.objects import Json
from member import labels
from member.labels import TIFLASH_710_KEEP_PORTS, TIFLASH_MOUNT_CONFIG_MAP
from member.naming import cluster_secret, discovery_mtls, member_name, peer_service, referenced_cluster
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import Content
from member.objects.services import peer, port
from member.objects.volumes import capacity
from member.startscript import options, tiflash_init_script, tiflash_script
from member.tici.desired import bucket, key_variables, text_for_keys

SERVER_TEMPLATE, PROXY_TEMPLATE = "config_templ.toml", "proxy_templ.toml"
POD_NUMBER, PD_ADDRESS = "POD_NUM", "PD_ADDR"
TLS_VOLUME = "tiflash-tls"

LOGS: Mapping[str, tuple[str, str]] = {
    "serverlog": ("logger.log", "/data0/logs/server.log"),
    "errorlog": ("logger.errorlog", "/data0/logs/error.log"),
    "clusterlog": ("flash.flash_cluster.log", "/data0/logs/flash_cluster_manager.log"),
}
"""The sidecars that print a log file: the setting with its path, and the default path."""

TICI_READER_PORT = 8520
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
    return _with_reader(tc, tables)


def proxy_tables(tc: TidbCluster) -> Table:
    """The configuration of the proxy. Raises InvalidField for values that validation rejects."""
    spec = tc.spec.tiflash
    assert spec is not None  # `component` has checked it
    tables = config.tables(spec.config.proxy if spec.config else None, TIFLASH_PROXY, "spec.tiflash.config.proxy")
    _add(tables, {"log-level": "info", "server.status-addr": f"{_listen(tc)}:{TIFLASH_STATUS_PORT}"})
    if not is_config_mounted(tc) or not images.at_least(component(tc, "tiflash").version, _SEVERAL_DISKS):
        own = {"engine-addr": TIFLASH_SERVICE_PORT, "advertise-status-addr": TIFLASH_STATUS_PORT}
        _add(tables, {f"server.{key}": f"{_own_host(tc)}:{port}" for key, port in own.items()})
    if tc.spec.tici:
        addresses = {"addr": _listen(tc), "advertise-addr": _own_host(tc)}
        _add(tables, {f"server.{key}": f"{host}:{TIFLASH_PROXY_PORT}" for key, host in addresses.items()})
    if tls_enabled(tc):
        _put_certificates(tables, ("ca-path", "cert-path", "key-path"))
        names = config.get(component(tc, "tiflash").config_tables(), "security.cert_allowed_cn")
        if names is not None:
            config.put_if_absent(tables, "security.cert-allowed-cn", names)
    return tables


def _with_reader(tc: TidbCluster, tables: Table) -> Table:
    """The configuration with the reader of full-text indexes, if the cluster has them (TICI-20)."""
    tici = tc.spec.tici
    if tici is None or tici.s3 is None:
        return tables
    reader = (tici.reader and tici.reader.port) or TICI_READER_PORT
    own = {
        "tici.reader-node.addr": f"{_listen(tc)}:{reader}",
        "tici.reader-node.advertise-addr": f"{_own_host(tc)}:{reader}",
        "tici.logger.filename": "/data0/logs/tici_searchlib.log",
        "tici.logger.level": "info",
        "tici.storage.data-dir": "/data0/tici/searchlib",
        **{f"tici.s3.{key}": value for key, value in bucket(tc).items()},
    }
    _add(tables, own)
    return tables


def log_file(tc: TidbCluster, sidecar: str) -> str:
    """The log file that a sidecar prints."""
    path, default = LOGS[sidecar]
    written: str | None = config.get(component(tc, "tiflash").config_tables(), path)
    return default if written is None else written


def _common(tc: TidbCluster, *, mounted: bool) -> dict[str, object]:
    """The defaults of all versions. `mounted` is True if flags provide the pod-specific settings."""
    # the reader of full-text indexes is found by the address of the server beside it
    host = _own_host(tc) if tc.spec.tici else _listen(tc)
    own = {
        "flash.service_addr": f"{host}:{TIFLASH_SERVICE_PORT}",
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


_CONFIG_MOUNT = volumes.mount("config", "/etc/tiflash", read_only=True)
_NEWEST_OF_V16 = ("latest", "nightly", "master")
_OLD = "v4.0.0"
_CONTAINER_PORTS = ("tiflash", "proxy", "tcp", "http", "internal", "metrics")


def services(tc: TidbCluster) -> list[Json]:
    """TiFlash's Service for the members among themselves."""
    row = component(tc, "tiflash").type
    ports = [port(name, row.ports[known_as]) for name, known_as in row.peer_ports.items()]
    return [peer(tc, "tiflash", ports, used_by="")]


def content(tc: TidbCluster) -> Content:
    """The texts of TiFlash's ConfigMap; its scripts are in its pods.

    Raises InvalidField for values that validation rejects.
    """
    return _content(tc, proxy_tables(tc))


def _content(tc: TidbCluster, proxy: Table) -> Content:
    server = text_for_keys(tc, server_tables(tc), "tici.s3")
    return Content({SERVER_TEMPLATE: server, PROXY_TEMPLATE: toml.dumps(proxy)}, {})


def configured_by_v16(tc: TidbCluster) -> Content:
    """The texts as v1.6 writes them: it treats a version without a number as old, unless it names the newest (6.7).

    With TiCI, v1.7 also lets the proxy fill its disk, a setting for tests that is left out here (TICI-20).
    """
    tiflash = component(tc, "tiflash")
    if images.order(tiflash.version) != images.NEWEST or tiflash.version.partition("-")[0] in _NEWEST_OF_V16:
        if tc.spec.tici is None:
            return content(tc)
        proxy = proxy_tables(tc)
        _add(proxy, {"storage.reserve-space": "1KB"})
        return _content(tc, proxy)
    old = structs.replace(_spec(tc), base_image="", image=images.with_version(tiflash.image, _OLD))
    return content(structs.replace(tc, spec=tiflash.type.replaced(tc.spec, old)))


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiFlash's StatefulSet, whose pods read the ConfigMap of that name. Raises InvalidField like `content`."""
    tiflash, spec = component(tc, "tiflash"), _spec(tc)
    certificates = {TLS_VOLUME: cluster_secret(tc, "tiflash")} if tls_enabled(tc) else {}
    mounted = is_config_mounted(tc)
    container = pod.main_container(
        tiflash,
        command=["/bin/sh", "-c", tiflash_script(tc, config_mounted=mounted)],
        ports=[pod.container_port(name, tiflash.type.ports[name]) for name in _CONTAINER_PORTS],
        mounts=[
            volumes.ANNOTATIONS_MOUNT,
            *_data_mounts(spec),
            *spec.additional_volume_mounts,
            *volumes.certificate_mounts(certificates),
            *([_CONFIG_MOUNT] if mounted else []),
        ],
        builtin_env=_env(tc, spec),
    )
    if spec.security_context is None:
        container["securityContext"] = {"privileged": bool(spec.privileged)}
    template = pod.pod_template(
        tiflash,
        containers=[container, *(_log_tailer(tc, sidecar) for sidecar in LOGS)],
        init_containers=[] if mounted else [_init_container(tc)],
        volumes=[
            volumes.ANNOTATIONS_VOLUME,
            {"name": "config", "configMap": {"name": config_map_name}},
            *volumes.certificate_volumes(certificates),
        ],
        metrics_port=TIFLASH_METRICS_PORT,
        sysctl_container="sysctl",
    )
    template["metadata"]["annotations"][labels.TIFLASH_PROXY_PORT] = str(TIFLASH_STATUS_PORT)
    return stateful_sets.stateful_set(tiflash, template=template, claims=volumes.storage_claims(spec))


def _data_mounts(spec: TiFlashSpec) -> list[Json]:
    return [_data_mount(volumes.storage_claim_name(index)) for index in range(len(spec.storage_claims))]


def _data_mount(volume: str) -> Json:
    return volumes.mount(volume, f"/{volume}")


def _env(tc: TidbCluster, spec: TiFlashSpec) -> list[Json]:
    own_pod = [pod.POD_NAME] if component(tc, "tiflash").host_network else []
    return [
        pod.NAMESPACE,
        pod.env("CLUSTER_NAME", tc.metadata.name),
        pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "tiflash")),
        pod.env("CAPACITY", capacity(spec.limits)),
        pod.env("TZ", tc.spec.timezone or "UTC"),
        *own_pod,
    ]


def _log_tailer(tc: TidbCluster, sidecar: str) -> Json:
    """A sidecar that prints a log file, with a mount of the volume that the file's first directory names."""
    file = log_file(tc, sidecar)
    mount = _data_mount(file.lstrip("/").split("/")[0])
    return pod.log_tailer(component(tc, "tiflash"), sidecar, file, mount, _spec(tc).log_tailer)


def _init_container(tc: TidbCluster) -> Json:
    """The init container that fills in the configuration templates.

    If Discovery requires a client certificate, the container uses TiFlash's own image: the helper image has no curl.
    """
    own = _spec(tc).initializer or TiFlashInitializer()
    shows_certificate = options.asks_discovery(tc) and discovery_mtls(tc)
    certificates = {TLS_VOLUME: cluster_secret(tc, "tiflash")} if shows_certificate else {}
    return pod.without_unset(
        {
            "name": "init",
            "image": component(tc, "tiflash").image if shows_certificate else helper_image(tc),
            "command": ["sh", "-c", tiflash_init_script(tc)],
            "env": [pod.POD_NAME, *key_variables(tc)],
            "volumeMounts": [_data_mount("data0"), _CONFIG_MOUNT, *volumes.certificate_mounts(certificates)],
            "resources": container_resources(own.requests, own.limits, own.claims),
            "securityContext": own.security_context,
        }
    )


def _spec(tc: TidbCluster) -> TiFlashSpec:
    assert tc.spec.tiflash is not None  # `component` has checked it
    return tc.spec.tiflash
