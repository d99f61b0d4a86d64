"""TiDB's desired objects (objects.md 2.2, 4.4, 6.4): pure functions of a defaulted TidbCluster."""

import posixpath
from dataclasses import dataclass

from apis import config, toml
from apis.accessor import Component, component
from apis.component_specs import CustomizedStartupProbe, TiDBServiceSpec, TiDBSpec
from apis.identity import scheme, tls_enabled
from apis.ready_endpoints import asks_ready_endpoint
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from dataplane.addresses import TIDB_SERVER_PORT, TIDB_STATUS_PORT
from kube.objects import Json
from member.naming import (
    cluster_secret,
    peer_service,
    tidb_auth_token_secret,
    tidb_server_secret,
)
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, peer, port
from member.startscript import tidb_script
from member.startscript.fragments import quoted
from member.startscript.servers import tidb_options

_TLS = "tidb-tls"
_SERVER_TLS = "tidb-server-tls"
_JWKS = "tidb-auth-token"
_BOOTSTRAP_SQL = "tidb-bootstrap-sql"
_BOOTSTRAP_DIRECTORY = "/etc/tidb-bootstrap"
_SLOW_LOG_VOLUME = "slowlog"
_SLOW_LOG_MOUNT = volumes.mount(_SLOW_LOG_VOLUME, "/var/log/tidb")
_PROBE_DIRECTORY = "/var/lib/customized-startup-probe"


def services(tc: TidbCluster) -> list[Json]:
    """TiDB's Services: for clients if the spec has one, and for the members among themselves."""
    among_members = peer(tc, "tidb", [port("status", TIDB_STATUS_PORT)])
    chosen = _spec(tc).service
    return [among_members] if chosen is None else [_end_user_service(tc, chosen), among_members]


def _end_user_service(tc: TidbCluster, chosen: TiDBServiceSpec) -> Json:
    spec = pod.without_unset(
        {
            "type": chosen.type,
            "ports": _service_ports(chosen),
            "clusterIP": chosen.cluster_ip,
            "externalTrafficPolicy": chosen.external_traffic_policy,
        }
    )
    if chosen.type == "LoadBalancer":
        spec |= pod.without_unset(
            {
                "loadBalancerIP": chosen.load_balancer_ip,
                "loadBalancerSourceRanges": chosen.load_balancer_source_ranges,
                "loadBalancerClass": chosen.load_balancer_class,
            }
        )
    return end_user(tc, "tidb", spec, chosen.labels, chosen.annotations)


def _service_ports(chosen: TiDBServiceSpec) -> list[Json]:
    sql = port(
        chosen.port_name or "mysql-client",
        chosen.port or TIDB_SERVER_PORT,
        target=TIDB_SERVER_PORT,
        node_port=chosen.mysql_node_port or 0,
    )
    ports = [sql, *chosen.additional_ports]
    if chosen.expose_status is not False:
        ports.append(port("status", TIDB_STATUS_PORT, node_port=chosen.status_node_port or 0))
    return ports


def content(tc: TidbCluster) -> Content:
    """The texts of TiDB's ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, "tidb").config_tables()
    _force(tc, _spec(tc), tables)
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: tidb_script(tc)}, tidb_options(tc))


def _force(tc: TidbCluster, spec: TiDBSpec, tables: Table) -> None:
    """Set what the operator always overrides (objects.md 6.4)."""
    if spec.token_based_auth_enabled:
        key_set = f"{volumes.tls_directory(_JWKS)}/tidb_auth_token_jwks.json"
        config.put(tables, "security.auth-token-jwks", key_set)
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_TLS)
        config.put(tables, "security.cluster-ssl-ca", ca)
        config.put(tables, "security.cluster-ssl-cert", certificate)
        config.put(tables, "security.cluster-ssl-key", key)
        if tc.spec.tiproxy is not None and tc.spec.tiproxy.replicas != 0:
            config.put(tables, "security.session-token-signing-key", key)
            config.put(tables, "security.session-token-signing-cert", certificate)
    if spec.tls_client is not None and spec.tls_client.enabled:
        ca, certificate, key = volumes.certificate_files(_SERVER_TLS)
        config.put(tables, "security.ssl-cert", certificate)
        config.put(tables, "security.ssl-key", key)
        if not spec.tls_client.disable_client_authn:
            config.put(tables, "security.ssl-ca", ca)
    if spec.bootstrap_sql_config_map_name:
        config.put(tables, "initialize-sql-file", f"{_BOOTSTRAP_DIRECTORY}/bootstrap.sql")


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiDB's StatefulSet, whose pods read the ConfigMap of that name.

    Raises InvalidField if the spec puts the slow log on a volume that does not exist.
    """
    tidb, spec = component(tc, "tidb"), _spec(tc)
    log, probe = _slow_log(spec), spec.customized_startup_probe
    tailer = [pod.log_tailer(tidb, "slowlog", log.path, log.mount, spec.slow_log_tailer)] if log else []
    programs = [_probe_container(probe, spec.security_context)] if probe else []
    template = pod.pod_template(
        tidb,
        containers=[*tailer, _container(tc, tidb, spec)],
        init_containers=programs,
        volumes=_volumes(tc, spec, config_map_name),
        metrics_port=TIDB_STATUS_PORT,
    )
    return stateful_sets.stateful_set(
        tidb,
        template=template,
        claims=volumes.storage_volume_claims("tidb", spec),
    )


def _container(tc: TidbCluster, tidb: Component, spec: TiDBSpec) -> Json:
    container = pod.main_container(
        tidb,
        command=["/bin/sh", volumes.start_script("tidb")],
        ports=[pod.container_port("server", TIDB_SERVER_PORT), pod.container_port("status", TIDB_STATUS_PORT)],
        mounts=_mounts(tc, spec),
        builtin_env=_env(tc, spec),
    )
    container["readinessProbe"] = pod.readiness_probe(_health(tc, spec), spec.readiness_probe)
    if spec.lifecycle:
        container["lifecycle"] = spec.lifecycle
    if spec.customized_startup_probe is not None:
        container["startupProbe"] = _startup_probe(spec.customized_startup_probe)
    return container


def _health(tc: TidbCluster, spec: TiDBSpec) -> Json:
    by_command = spec.readiness_probe is not None and spec.readiness_probe.type == "command"
    if not by_command and not asks_ready_endpoint(component(tc, "tidb")):
        return pod.tcp_handler(TIDB_SERVER_PORT)
    words = ["curl", f"{scheme(tc)}://127.0.0.1:{TIDB_STATUS_PORT}/status", "--fail", "--location"]
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_TLS)
        words += ["--cacert", ca, "--cert", certificate, "--key", key]
    return pod.command_handler(*words)


def _env(tc: TidbCluster, spec: TiDBSpec) -> list[Json]:
    log = _slow_log(spec)
    binlog = tc.spec.pump is not None if spec.binlog_enabled is None else spec.binlog_enabled
    return [
        pod.env("CLUSTER_NAME", tc.metadata.name),
        pod.env("TZ", tc.spec.timezone),
        pod.env("BINLOG_ENABLED", "true" if binlog else "false"),
        pod.env("SLOW_LOG_FILE", log.path if log else ""),
        pod.POD_NAME,
        pod.NAMESPACE,
        pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "tidb")),
    ]


def _mounts(tc: TidbCluster, spec: TiDBSpec) -> list[Json]:
    log = _slow_log(spec)
    return [
        volumes.ANNOTATIONS_MOUNT,
        *volumes.config_mounts("tidb"),
        *volumes.certificate_mounts(_secrets_before_sql(tc, spec)),
        *volumes.certificate_mounts(_certificates(tc, spec)),
        *([volumes.mount(_BOOTSTRAP_SQL, _BOOTSTRAP_DIRECTORY, read_only=True)] if _bootstraps(spec) else []),
        *volumes.storage_volume_mounts("tidb", spec.storage_volumes),
        *spec.additional_volume_mounts,
        *([log.mount] if log and log.own_volume else []),
        *([_probe_mount(spec.customized_startup_probe)] if spec.customized_startup_probe else []),
    ]


def _volumes(tc: TidbCluster, spec: TiDBSpec, config_map_name: str) -> list[Json]:
    log = _slow_log(spec)
    return [
        volumes.ANNOTATIONS_VOLUME,
        *volumes.config_volumes("tidb", config_map_name),
        *volumes.certificate_volumes(_secrets_before_sql(tc, spec)),
        *_bootstrap_volume(spec),
        *volumes.certificate_volumes(_certificates(tc, spec)),
        *([log.own_volume] if log and log.own_volume else []),
        *([_probe_volume(spec.customized_startup_probe)] if spec.customized_startup_probe else []),
    ]


def _secrets_before_sql(tc: TidbCluster, spec: TiDBSpec) -> dict[str, str]:
    """The volume that precedes the bootstrap SQL's volume (objects.md 4)."""
    return {_JWKS: tidb_auth_token_secret(tc)} if spec.token_based_auth_enabled else {}


def _certificates(tc: TidbCluster, spec: TiDBSpec) -> dict[str, str]:
    """Certificate volume → Secret, in the order of the mounts."""
    secrets = {}
    if tls_enabled(tc):
        secrets[_TLS] = cluster_secret(tc, "tidb")
    if spec.tls_client is not None and spec.tls_client.enabled:
        secrets[_SERVER_TLS] = tidb_server_secret(tc)
    return secrets


def _bootstraps(spec: TiDBSpec) -> bool:
    return bool(spec.bootstrap_sql_config_map_name)


def _bootstrap_volume(spec: TiDBSpec) -> list[Json]:
    name = spec.bootstrap_sql_config_map_name
    return [volumes.config_map_volume(_BOOTSTRAP_SQL, name, "bootstrap-sql", "bootstrap.sql")] if name else []


@dataclass(frozen=True, slots=True)
class _SlowLog:
    """The file that a sidecar prints, the mount of its volume, and that volume if it is a separate emptyDir."""

    path: str
    mount: Json
    own_volume: Json | None


def _slow_log(spec: TiDBSpec) -> _SlowLog | None:
    """The separate slow log (4.4), or None if TiDB writes it into its general log.

    Raises InvalidField for a volume that does not exist; validation normally rejects it earlier.
    """
    if spec.separate_slow_log is False:
        return None
    name = spec.slow_log_volume_name
    if not name:
        return _SlowLog(
            f"{_SLOW_LOG_MOUNT['mountPath']}/slowlog", _SLOW_LOG_MOUNT, {"name": _SLOW_LOG_VOLUME, "emptyDir": {}}
        )
    field = "spec.tidb.slowLogVolumeName"
    mount = volumes.find_mount("tidb", name, spec.storage_volumes, spec.additional_volume_mounts, field)
    return _SlowLog(posixpath.join(mount["mountPath"], name), mount, None)


def _probe_volume(probe: CustomizedStartupProbe) -> Json:
    return {"name": probe.binary_name, "emptyDir": {}}


def _probe_mount(probe: CustomizedStartupProbe) -> Json:
    return volumes.mount(probe.binary_name, _PROBE_DIRECTORY)


def _probe_container(probe: CustomizedStartupProbe, security_context: Json | None) -> Json:
    """The init container that copies the program of the customized startup probe into the pod (4.4)."""
    name = probe.binary_name
    copy = f"cp {quoted(f'/{name}')} {quoted(f'{_PROBE_DIRECTORY}/{name}')} && echo {quoted(f'{name} copied')}"
    return pod.without_unset(
        {
            "name": name,
            "image": probe.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c"],
            "args": [f"# Copies the probe. Made by tidb-operator from the TidbCluster.\n{copy}\n"],
            "volumeMounts": [_probe_mount(probe)],
            "securityContext": security_context,
        }
    )


def _startup_probe(probe: CustomizedStartupProbe) -> Json:
    """The probe that runs the copied program. Ignores `initialDelaySeconds`, as v1.6 does."""
    times = {
        "timeoutSeconds": probe.timeout_seconds,
        "periodSeconds": probe.period_seconds,
        "failureThreshold": probe.failure_threshold,
    }
    given = {name: value for name, value in times.items() if value is not None and value >= 1}
    return {
        "exec": {"command": [f"{_PROBE_DIRECTORY}/{probe.binary_name}", *probe.args]},
        "successThreshold": 1,
        **given,
    }


def _spec(tc: TidbCluster) -> TiDBSpec:
    assert tc.spec.tidb is not None  # `component` has checked it
    return tc.spec.tidb
