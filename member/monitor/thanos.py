"""The Thanos sidecar (other-resources.md 3.6)."""

import posixpath

from apis.monitor_parts import ThanosSpec
from apis.monitors import TidbMonitor
from kube.objects import Json
from member.monitor.containers import DATA_MOUNT, container
from member.objects.pod import NAMESPACE, POD_NAME, container_port, env_from_field

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
        args=_arguments(spec, uploads=uploads),
        ports=[container_port("http", HTTP_PORT), container_port("grpc", GRPC_PORT)],
        env=variables,
        volumeMounts=[*([DATA_MOUNT] if uploads else []), *spec.additional_volume_mounts],
    )


def _arguments(spec: ThanosSpec, *, uploads: bool) -> list[str]:
    host = "127.0.0.1" if spec.listen_local else "[$(POD_IP)]"
    route, tls = posixpath.normpath(spec.route_prefix or "."), spec.grpc_server_tls_config
    arguments = [
        "sidecar",
        f"--prometheus.url=http://localhost:9090/{route.removeprefix('/')}",
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
