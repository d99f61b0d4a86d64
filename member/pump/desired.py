"""Pump's desired objects (objects.md 4.8, 6.4). Pure functions of a defaulted TidbCluster."""

from apis import config, toml
from apis.accessor import Component, component
from apis.component_specs import PumpSpec
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PUMP_PORT
from kube.objects import Json
from member.naming import cluster_secret
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import Content
from member.objects.services import peer, port
from member.startscript import pump_script
from member.startscript.options import is_v2

_FILE = "pump-config"
_TLS = "pump-tls"
_HOSTNAME = pod.env_from_field("HOSTNAME", "metadata.name")
"""With host networking this is the node's name."""


def services(tc: TidbCluster) -> list[Json]:
    """Pump's Service for TiDB and drainers, which connect to each pod by name."""
    return [peer(tc, "pump", [port("pump", PUMP_PORT)], used_by="")]


def content(tc: TidbCluster) -> Content:
    """The text of Pump's ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, "pump").config_tables()
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_TLS)
        config.put(tables, "security.ssl-ca", ca)
        config.put(tables, "security.ssl-cert", certificate)
        config.put(tables, "security.ssl-key", key)
    return Content({_FILE: toml.dumps(tables)}, {})


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """Pump's StatefulSet, whose pods read the ConfigMap of that name. Raises InvalidField like `content`."""
    pump, spec = component(tc, "pump"), _spec(tc)
    certificates = {_TLS: cluster_secret(tc, "pump")} if tls_enabled(tc) else {}
    container = pod.main_container(
        pump,
        command=["/bin/sh", "-c", pump_script(tc, _log_level(pump))],
        ports=[pod.container_port("pump", PUMP_PORT)],
        mounts=[
            volumes.mount("data", "/data"),
            volumes.mount("config", "/etc/pump"),
            *volumes.certificate_mounts(certificates),
            *([volumes.ANNOTATIONS_MOUNT] if is_v2(tc) else []),
            *spec.additional_volume_mounts,
        ],
        builtin_env=_env(pump, spec),
    )
    container["readinessProbe"] = pod.tcp_handler(PUMP_PORT)
    template = pod.pod_template(
        pump,
        containers=[container],
        volumes=[
            volumes.config_map_volume("config", config_map_name, _FILE, "pump.toml"),
            *volumes.certificate_volumes(certificates),
            *([volumes.ANNOTATIONS_VOLUME] if is_v2(tc) else []),
        ],
        metrics_port=PUMP_PORT,
    )
    return stateful_sets.stateful_set(
        pump, template=template, claims=[volumes.data_claim("data", pump.storage_request, spec)]
    )


def as_built_by_v16(tc: TidbCluster, made: Json) -> Json:
    """The same without what v1.6 ignores: volumes and mounts of the user's, and who sets sysctls (objects.md 4.8)."""
    pump, spec, there = component(tc, "pump"), _spec(tc), made["spec"]["template"]["spec"]
    return pod.with_other_fields(
        made,
        {
            "initContainers": spec.init_containers,
            "containers": pod.without_mounts(there["containers"], "pump", spec.additional_volume_mounts),
            "volumes": [volume for volume in there["volumes"] if volume not in spec.additional_volumes],
            "securityContext": pump.pod_security_context,
        },
    )


def _env(pump: Component, spec: PumpSpec) -> list[Json]:
    zone = [pod.env("TZ", pump.cluster.timezone)] if spec.set_time_zone else []
    return [*zone, *([_HOSTNAME] if pump.host_network else [])]


def _log_level(pump: Component) -> str:
    level = pump.config_tables().get("log-level")
    return level if isinstance(level, str) and level else "info"


def _spec(tc: TidbCluster) -> PumpSpec:
    assert tc.spec.pump is not None  # `component` has checked it
    return tc.spec.pump
