"""TiKV's desired objects (objects.md 4.3, 6.4): pure functions of a defaulted TidbCluster."""

import posixpath
from dataclasses import dataclass

from apis import config, images, toml
from apis.accessor import component
from apis.component_specs import TiKVSpec
from apis.identity import tls_enabled
from apis.ready_endpoints import asks_ready_endpoint
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from dataplane.addresses import TIKV_SERVER_PORT, TIKV_STATUS_PORT
from kube.objects import Json
from member.labels import RESTORING_TO_POINT_IN_TIME
from member.naming import cluster_client_secret, cluster_secret, peer_service
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import peer, port
from member.objects.volumes import capacity
from member.startscript import tikv_script
from member.startscript.hooks import tikv_hooks
from member.startscript.servers import tikv_options

GC_RATIO, GC_OFF = "gc.ratio-threshold", -1.0
"""The setting that makes TiKV keep what a restore to a point in time needs (backup.md 4.4)."""

_TLS = "tikv-tls"
_CLIENT_TLS = "cluster-client-tls"
_DATA_MOUNT = volumes.mount("tikv", "/var/lib/tikv")
_NUMBERS_IN_OLD_VERSIONS = ("pessimistic-txn.wait-for-lock-timeout", "pessimistic-txn.wake-up-delay-duration")


def services(tc: TidbCluster) -> list[Json]:
    """TiKV's Service for the members among themselves."""
    return [peer(tc, "tikv", [port("peer", TIKV_SERVER_PORT)])]


def content(tc: TidbCluster) -> Content:
    """The texts of TiKV's ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, "tikv").config_tables()
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_TLS)
        config.put(tables, "security.ca-path", ca)
        config.put(tables, "security.cert-path", certificate)
        config.put(tables, "security.key-path", key)
    _digits_as_numbers(tables)
    if RESTORING_TO_POINT_IN_TIME in tc.metadata.annotations:
        config.put(tables, GC_RATIO, GC_OFF)
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: tikv_script(tc)}, tikv_options(tc))


def _digits_as_numbers(tables: Table) -> None:
    """Convert digits to numbers: TiKV before 4.0 requires a number of milliseconds; later versions accept both."""
    for path in _NUMBERS_IN_OLD_VERSIONS:
        value = config.get(tables, path)
        if isinstance(value, str) and value.isascii() and value.isdigit():
            config.put(tables, path, int(value))


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiKV's StatefulSet, whose pods read the ConfigMap of that name.

    Raises InvalidField if the spec puts a log file on a volume that does not exist.
    """
    tikv, spec = component(tc, "tikv"), _spec(tc)
    certificates = _certificates(tc)
    container = pod.main_container(
        tikv,
        command=["/bin/sh", volumes.start_script("tikv")],
        ports=_ports(spec),
        mounts=[
            volumes.ANNOTATIONS_MOUNT,
            volumes.mount("tikv", "/var/lib/tikv"),
            *volumes.config_mounts("tikv"),
            *spec.additional_volume_mounts,
            *volumes.certificate_mounts(certificates),
            *volumes.storage_volume_mounts("tikv", spec.storage_volumes),
        ],
        builtin_env=_env(tc),
        hooks=tikv_hooks(tc),
    )
    if spec.security_context is None:
        container["securityContext"] = {"privileged": bool(spec.privileged)}
    if spec.readiness_probe is not None:
        container["readinessProbe"] = pod.readiness_probe(pod.tcp_handler(TIKV_SERVER_PORT), spec.readiness_probe)
    elif asks_ready_endpoint(tikv):
        container["readinessProbe"] = pod.readiness_probe(_ready(tc), None)
    tailers = [
        pod.log_tailer(tikv, file.sidecar, file.path, file.mount, spec.log_tailer) for file in _log_files(tc, spec)
    ]
    template = pod.pod_template(
        tikv,
        containers=[*tailers, container],
        volumes=[
            volumes.ANNOTATIONS_VOLUME,
            *volumes.config_volumes("tikv", config_map_name),
            *volumes.certificate_volumes(certificates),
        ],
        metrics_port=TIKV_STATUS_PORT,
    )
    return stateful_sets.stateful_set(
        tikv,
        template=template,
        claims=[
            volumes.data_claim("tikv", tikv.storage_request, spec),
            *volumes.storage_volume_claims("tikv", spec),
        ],
    )


def _ready(tc: TidbCluster) -> Json:
    """A handler that asks TiKV; the kubelet itself has no certificate for TLS."""
    if not tls_enabled(tc):
        return {"httpGet": {"path": "/ready", "port": TIKV_STATUS_PORT}}
    ca, certificate, key = volumes.certificate_files(_TLS)
    url = f"https://127.0.0.1:{TIKV_STATUS_PORT}/ready"
    return pod.command_handler("curl", url, "--fail", "--cacert", ca, "--cert", certificate, "--key", key)


def _ports(spec: TiKVSpec) -> list[Json]:
    server = pod.container_port("server", TIKV_SERVER_PORT)
    return [server, pod.container_port("status", TIKV_STATUS_PORT)] if spec.enable_named_status_port else [server]


def _env(tc: TidbCluster) -> list[Json]:
    tikv = component(tc, "tikv")
    own_pod = [pod.POD_NAME] if tikv.host_network else []
    return [
        pod.NAMESPACE,
        pod.env("CLUSTER_NAME", tc.metadata.name),
        pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "tikv")),
        pod.env("CAPACITY", capacity(_spec(tc).limits)),
        pod.env("TZ", tc.spec.timezone),
        *own_pod,
    ]


def _certificates(tc: TidbCluster) -> dict[str, str]:
    """Certificate volume → Secret, in the order of the mounts."""
    if not tls_enabled(tc):
        return {}
    own = {_TLS: cluster_secret(tc, "tikv")}
    return own | {_CLIENT_TLS: cluster_client_secret(tc)} if _spec(tc).mount_cluster_client_secret else own


def _spec(tc: TidbCluster) -> TiKVSpec:
    assert tc.spec.tikv is not None  # `component` has checked it
    return tc.spec.tikv


@dataclass(frozen=True, slots=True)
class _LogFile:
    """A log file that a sidecar prints: the sidecar's name, the file, and the mount of its volume."""

    sidecar: str
    path: str
    mount: Json


def _log_files(tc: TidbCluster, spec: TiKVSpec) -> list[_LogFile]:
    """The separate log files (4.3), in the order of their sidecars.

    Raises InvalidField for a volume that does not exist; validation normally rejects it earlier.
    """
    current = images.at_least(component(tc, "tikv").version, "v5.0.0")
    rocksdb = "rocksdb.info" if current else "db/LOG"
    raft = "raftdb.info" if current else "raft/LOG"
    files = []
    if spec.separate_rocks_db_log:
        field = "spec.tikv.rocksDBLogVolumeName"
        files.append(_log_file("rocksdblog", rocksdb, spec, spec.rocks_db_log_volume_name, field))
    if spec.separate_raft_log:
        field = "spec.tikv.raftLogVolumeName"
        files.append(_log_file("raftlog", raft, spec, spec.raft_log_volume_name, field))
    return files


def _log_file(sidecar: str, name: str, spec: TiKVSpec, volume: str, field: str) -> _LogFile:
    mount = _DATA_MOUNT
    if volume:
        mount = volumes.find_mount("tikv", volume, spec.storage_volumes, spec.additional_volume_mounts, field)
    return _LogFile(sidecar, posixpath.join(mount["mountPath"], name), mount)
