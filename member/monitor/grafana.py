"""Grafana: its container, its provisioning, its password (other-resources.md 3.6)."""

import base64
import json

from apis.monitor_parts import GrafanaSpec
from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from kube.objects import Json
from member.monitor.containers import (
    DASHBOARDS,
    DASHBOARDS_MOUNT,
    DATA,
    DATA_MOUNT,
    DATASOURCE_MOUNT,
    container,
)
from member.monitor.naming import APP, base_labels, grafana_config_name, monitor_name, object_meta
from member.objects.pod import container_port
from member.objects.volumes import mount

PORT = 3000
OPERATOR_DASHBOARDS = "/grafana-dashboard-definitions/tidb-operator"
_USER = "admin"


def grafana(monitor: TidbMonitor, spec: GrafanaSpec) -> Json:
    """The container; the user's variables replace the operator's."""
    secret = monitor_name(monitor)
    variables: dict[str, Json] = {
        "GF_PATHS_DATA": {"value": f"{DATA}/grafana"},
        "TZ": {"value": monitor.spec.timezone},
        "GF_SECURITY_ADMIN_USER": _from_secret(spec.username_secret, secret, "username"),
        "GF_SECURITY_ADMIN_PASSWORD": _from_secret(spec.password_secret, secret, "password"),
    }
    if spec.log_level:
        variables["GF_LOG_LEVEL"] = {"value": spec.log_level}
    variables |= {name: {"value": value} for name, value in spec.envs.items()}
    mounts = [
        DATA_MOUNT,
        DATASOURCE_MOUNT,
        mount("dashboards-provisioning", "/etc/grafana/provisioning/dashboards"),
        DASHBOARDS_MOUNT,
        *spec.additional_volume_mounts,
    ]
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        mounts.append(mount("operator", OPERATOR_DASHBOARDS, read_only=True))
    return container(
        monitor,
        "grafana",
        spec,
        ports=[container_port("grafana", PORT)],
        env=[{"name": name} | variables[name] for name in sorted(variables)],
        readinessProbe=_probe(timeoutSeconds=5, periodSeconds=10),
        livenessProbe=_probe(initialDelaySeconds=30, timeoutSeconds=5, periodSeconds=10, failureThreshold=10),
        volumeMounts=mounts,
    )


def _probe(**times: int) -> Json:
    return {"httpGet": {"path": "/api/health", "port": PORT}} | times


def _from_secret(chosen: Json | None, secret: str, key: str) -> Json:
    return {"valueFrom": {"secretKeyRef": chosen or {"name": secret, "key": key}}}


def provisioning(monitor: TidbMonitor) -> Json:
    """The ConfigMap with the paths of Grafana's dashboards."""
    providers = [_provider("0", DASHBOARDS)]
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        providers.append(_provider("tidb-operator", OPERATOR_DASHBOARDS))
    return {
        "metadata": object_meta(monitor, grafana_config_name(monitor), base_labels(monitor) | {APP: "grafana"}),
        "data": {"dashboards.yaml": json.dumps({"apiVersion": 1, "providers": providers}, indent=2)},
    }


def _provider(name: str, path: str) -> Json:
    return {
        "folder": "",
        "name": name,
        "options": {"path": path},
        "allowUiUpdates": True,
        "orgId": 1,
        "type": "file",
    }


def admin_secret(monitor: TidbMonitor, spec: GrafanaSpec) -> Json:
    """The Secret with the administrator's name and password from the spec."""
    plain = {"username": spec.username or _USER, "password": spec.password or _USER}
    return {
        "metadata": object_meta(monitor, monitor_name(monitor)),
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()},
    }
