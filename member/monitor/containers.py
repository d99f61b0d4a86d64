"""The containers of a monitor, except Grafana's (other-resources.md 3.6)."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from apis.accessor import container_resources
from apis.monitor_parts import InitializerSpec, MonitorContainer, ThanosSpec
from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from kube.objects import Json
from member.monitor.configuration import EXTERNAL_RULES, OPERATOR_RULES, RULES
from member.monitor.naming import ASSETS, DM_INITIALIZER, TIDB_INITIALIZER, VOLUME, First, Inputs
from member.objects.pod import NAMESPACE, POD_NAME, container_port, env, env_from_field, without_unset
from member.objects.volumes import mount
from member.startscript.fragments import expanding_words, quoted

PROMETHEUS_PORT = 9090
RELOADER_PORT = 9089
DATA = "/data"
DASHBOARDS = "/grafana-dashboard-definitions/tidb"
DATASOURCES = "/etc/grafana/provisioning/datasources"
_CONFIG = "/etc/prometheus/config"
_CONFIG_OUT = "/etc/prometheus/config_out"
_LOCAL_PROMETHEUS = "http://127.0.0.1:9090"
_RETENTION = "15d"
"""Prometheus' default; v1.6 sets 0d, which means the same."""

_PATH = "/:@!$&'()*+,;="
"""The characters of a path in a URL that need no escape (RFC 3986), beside letters, digits and -._~."""

_OF_POD = re.compile(r"\$\((NAMESPACE|POD_NAME|SHARD|TZ)\)")
"""The variables of Prometheus' container as Kubernetes writes them."""

DATA_MOUNT = mount(VOLUME, DATA)
RULES_MOUNT = mount("prometheus-rules", RULES)
DATASOURCE_MOUNT = mount("datasource", DATASOURCES)
DASHBOARDS_MOUNT = mount("grafana-dashboard", DASHBOARDS)
_CONFIG_MOUNTS = (mount("prometheus-config-out", _CONFIG_OUT), mount("prometheus-config", _CONFIG, read_only=True))


def container(monitor: TidbMonitor, name: str, spec: MonitorContainer, **fields: object) -> Json:
    """A container with the settings that all of them have; the monitor's pull policy is the default."""
    return without_unset(
        {
            "name": name,
            "image": f"{spec.base_image}:{spec.version}",
            "imagePullPolicy": spec.image_pull_policy or monitor.spec.image_pull_policy,
            "resources": container_resources(spec.requests, spec.limits, spec.claims),
            "securityContext": spec.security_context,
            **fields,
        }
    )


def rules_version(monitor: TidbMonitor) -> str:
    """The TiDB version of rules and dashboards, in the format of the initializer and the reloader."""
    return f"tidb:{monitor.spec.alert_manager_rules_version or monitor.spec.initializer.version}"


def with_users(builtin: Mapping[str, str], users: Mapping[str, str]) -> list[Json]:
    """Variables in order; the user's replace generated ones of the same name, or are appended."""
    return [env(name, value) for name, value in {**builtin, **users}.items()]


def init_containers(monitor: TidbMonitor, inputs: Inputs) -> list[Json]:
    """The init containers that fetch rules and dashboards before Prometheus starts."""
    spec = monitor.spec
    found = [_initializer(monitor, TIDB_INITIALIZER, spec.initializer, _for_tidb(monitor, inputs))]
    if spec.dm is not None and inputs.first_dm is not None:
        found.append(_initializer(monitor, DM_INITIALIZER, spec.dm.initializer, _for_dm(monitor, inputs.first_dm)))
    return found


def _initializer(monitor: TidbMonitor, name: str, spec: InitializerSpec, builtin: Mapping[str, str]) -> Json:
    data = ["prometheus"] if monitor.spec.grafana is None else ["prometheus", "grafana"]
    directories = " ".join(f"{DATA}/{each}" for each in data)
    script = f"set -e\nmkdir -p {directories}\nchmod 777 {directories}\n/usr/bin/init.sh\n"
    of_grafana = [] if monitor.spec.grafana is None else [DATASOURCE_MOUNT, DASHBOARDS_MOUNT]
    return container(
        monitor,
        name,
        spec,
        command=["/bin/sh", "-c", script],
        env=with_users(builtin, spec.envs),
        volumeMounts=[RULES_MOUNT, DATA_MOUNT, *of_grafana],
    )


def _for_tidb(monitor: TidbMonitor, inputs: Inputs) -> dict[str, str]:
    found = {
        "PROM_CONFIG_PATH": RULES,
        "PROM_PERSISTENT_DIR": DATA,
        "GF_TIDB_PROMETHEUS_URL": _LOCAL_PROMETHEUS,
        "TIDB_VERSION": rules_version(monitor),
        "TZ": monitor.spec.timezone,
    }
    if (first := inputs.first) is not None:
        found |= {
            "TZ": first.timezone,
            "TIDB_ENABLE_BINLOG": first.has_binlog,
            "TIDB_CLUSTER_NAME": first.name,
            "TIDB_CLUSTER_NAMESPACE": first.namespace,
        }
    if monitor.spec.kube_prometheus_url:
        found["GF_K8S_PROMETHEUS_URL"] = monitor.spec.kube_prometheus_url
    return found | _grafana_paths(monitor)


def _for_dm(monitor: TidbMonitor, first: First) -> dict[str, str]:
    found = {
        "DM_CLUSTER_NAME": first.name,
        "PROM_CONFIG_PATH": RULES,
        "PROM_PERSISTENT_DIR": DATA,
        "DM_VERSION": rules_version(monitor),
        "GF_DM_PROMETHEUS_URL": _LOCAL_PROMETHEUS,
        "DM_CLUSTER_NAMESPACE": first.namespace,
        "TZ": monitor.spec.timezone,
    }
    return found | _grafana_paths(monitor)


def _grafana_paths(monitor: TidbMonitor) -> dict[str, str]:
    if monitor.spec.grafana is None:
        return {}
    return {"GF_PROVISIONING_PATH": DASHBOARDS, "GF_DATASOURCE_PATH": DATASOURCES}


def prometheus(monitor: TidbMonitor, shard: int) -> Json:
    """The Prometheus container, whose script inserts the pod's names into the configuration."""
    spec = monitor.spec.prometheus
    mounts = [*_CONFIG_MOUNTS, DATA_MOUNT, RULES_MOUNT, mount("tls-assets", ASSETS, read_only=True)]
    mounts += spec.additional_volume_mounts
    if spec.config is not None and spec.config.rule_config_ref is not None:
        mounts.append(mount("external-rules", EXTERNAL_RULES, read_only=True))
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        mounts.append(mount("operator", OPERATOR_RULES, read_only=True))
    return container(
        monitor,
        "prometheus",
        spec,
        command=["/bin/sh", "-c", _start_script(_arguments(monitor))],
        ports=[container_port("prometheus", PROMETHEUS_PORT)],
        env=[*_of_pod(shard), env("TZ", monitor.spec.timezone)],
        readinessProbe={
            "httpGet": {"path": "/-/ready", "port": PROMETHEUS_PORT},
            "timeoutSeconds": 3,
            "periodSeconds": 5,
            "failureThreshold": 120,
        },
        volumeMounts=mounts,
    )


def _of_pod(shard: int) -> list[Json]:
    return [POD_NAME, NAMESPACE, env("SHARD", str(shard))]


def _start_script(arguments: Sequence[str]) -> str:
    # `$(` would be a substitution by Kubernetes
    names = ("NAMESPACE", "POD_NAME", "SHARD")
    edits = " ".join(f"-e 's/[$]({name})/'\"${name}\"'/g'" for name in names)
    source, made = f"{_CONFIG}/prometheus.yml", f"{_CONFIG_OUT}/prometheus.yml"
    return f"set -e\nsed {edits} {source} > {made}\nexec /bin/prometheus {' '.join(arguments)}\n"


def _arguments(monitor: TidbMonitor) -> list[str]:
    """Words of the script; as in v1.6, white space separates the words of `commandOptions`, which may name
    variables."""
    spec = monitor.spec.prometheus
    retention = spec.retention_time or (f"{spec.reserve_days}d" if spec.reserve_days else _RETENTION)
    arguments = [
        "--web.enable-admin-api",
        "--web.enable-lifecycle",
        f"--config.file={_CONFIG_OUT}/prometheus.yml",
        f"--storage.tsdb.path={DATA}/prometheus",
        f"--storage.tsdb.retention.time={retention}",
    ]
    if spec.log_level:
        arguments.append(f"--log.level={spec.log_level}")
    arguments = [quoted(argument) for argument in arguments]
    if spec.config is not None:
        options = (_OF_POD.sub(r"${\1}", option) for option in spec.config.command_options)
        arguments += [word for option in options for word in expanding_words(option)]
    if spec.disable_compaction or monitor.spec.thanos is not None:
        arguments += ["--storage.tsdb.max-block-duration=2h", "--storage.tsdb.min-block-duration=2h"]
    return arguments


def reloader(monitor: TidbMonitor) -> Json:
    """The container through which users edit the rules."""
    command = [
        "/bin/reload",
        f"--root-store-path={DATA}",
        f"--sub-store-path={rules_version(monitor)}",
        f"--watch-path={RULES}/rules",
        f"--prometheus-url={_LOCAL_PROMETHEUS}",
    ]
    return container(
        monitor,
        "reloader",
        monitor.spec.reloader,
        command=command,
        ports=[container_port("reloader", RELOADER_PORT)],
        env=[env("TZ", monitor.spec.timezone)],
        volumeMounts=[RULES_MOUNT, DATA_MOUNT],
    )


def config_reloader(monitor: TidbMonitor, spec: MonitorContainer, shard: int) -> Json:
    """The container that makes Prometheus reload a changed configuration."""
    command = [
        "/bin/prometheus-config-reloader",
        "--listen-address=:9088",
        "--reload-url=http://localhost:9090/-/reload",
        f"--config-file={_CONFIG}/prometheus.yml",
        f"--config-envsubst-file={_CONFIG_OUT}/prometheus.yml",
    ]
    mounts = list(_CONFIG_MOUNTS)
    config = monitor.spec.prometheus.config
    if config is not None and config.rule_config_ref is not None:
        command.append(f"--watched-dir={EXTERNAL_RULES}")
        mounts.append(mount("external-rules", EXTERNAL_RULES, read_only=True))
    return container(
        monitor,
        "prometheus-config-reloader",
        spec,
        command=command,
        ports=[container_port("reloader", 9088)],
        env=_of_pod(shard),
        volumeMounts=mounts,
    )


GRPC_PORT, HTTP_PORT = 10901, 10902


def thanos(monitor: TidbMonitor, spec: ThanosSpec) -> Json:
    """The container of the sidecar."""
    uploads = bool(spec.object_storage_config_file or spec.object_storage_config)
    variables = [env_from_field("POD_IP", "status.podIP"), POD_NAME, NAMESPACE]
    if spec.object_storage_config and not spec.object_storage_config_file:
        variables.append(_from_secret("OBJSTORE_CONFIG", spec.object_storage_config))
    if spec.tracing_config and not spec.tracing_config_file:
        variables.append(_from_secret("TRACING_CONFIG", spec.tracing_config))
    return container(
        monitor,
        "thanos-sidecar",
        spec,
        args=_thanos_arguments(spec, uploads=uploads),
        ports=[container_port("http", HTTP_PORT), container_port("grpc", GRPC_PORT)],
        env=variables,
        volumeMounts=[*([DATA_MOUNT] if uploads else []), *spec.additional_volume_mounts],
    )


def _thanos_arguments(spec: ThanosSpec, *, uploads: bool) -> list[str]:
    host = "127.0.0.1" if spec.listen_local else "[$(POD_IP)]"
    route, tls = posixpath.normpath(spec.route_prefix or "."), spec.grpc_server_tls_config
    arguments = [
        "sidecar",
        f"--prometheus.url=http://localhost:9090/{quote(route.removeprefix('/'), _PATH)}",
        f"--grpc-address={host}:{GRPC_PORT}",
        f"--http-address={host}:{HTTP_PORT}",
    ]
    if tls is not None:
        arguments += _given("grpc-server-tls-cert", tls.cert_file)
        arguments += _given("grpc-server-tls-key", tls.key_file)
        arguments += _given("grpc-server-tls-client-ca", tls.ca_file)
    if uploads:
        arguments += _file_or_variable("objstore", spec.object_storage_config_file, "$(OBJSTORE_CONFIG)")
        arguments.append("--tsdb.path=/data/prometheus")
    if spec.tracing_config_file or spec.tracing_config:
        arguments += _file_or_variable("tracing", spec.tracing_config_file, "$(TRACING_CONFIG)")
    arguments += _given("log.level", spec.log_level)
    arguments += _given("log.format", spec.log_format)
    return arguments + _given("min-time", spec.min_time)


def _given(flag: str, value: str) -> list[str]:
    return [f"--{flag}={value}"] if value else []


def _file_or_variable(flag: str, file: str | None, variable: str) -> list[str]:
    return [f"--{flag}.config-file={file}"] if file else [f"--{flag}.config={variable}"]


def _from_secret(name: str, selector: Json) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": selector}}
