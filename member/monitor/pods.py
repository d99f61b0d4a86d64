"""The StatefulSet of a shard (other-resources.md 3.6)."""

import hashlib
from collections.abc import Iterator

from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from kube.objects import Json
from member.monitor.configuration import prometheus_yml
from member.monitor.containers import config_reloader, init_containers, prometheus, reloader, thanos
from member.monitor.grafana import grafana
from member.monitor.naming import (
    VOLUME,
    Inputs,
    assets_name,
    base_labels,
    grafana_config_name,
    monitor_name,
    object_meta,
    operator_config_name,
)
from member.objects.pod import with_additional_containers, without_unset
from member.objects.volumes import TOKEN_MOUNT, claim_template, token_volume

CONFIG_DIGEST = "tidb.pingcap.com/prometheus-config-digest"
"""An annotation of pods in which nothing reloads Prometheus' configuration: a new digest restarts the pods."""
_READABLE = 0o644


def stateful_set(monitor: TidbMonitor, inputs: Inputs, shard: int) -> Json:
    """The StatefulSet of the shard."""
    spec, name = monitor.spec, monitor_name(monitor, shard)
    selector = base_labels(monitor, shard)
    body: Json = {
        "replicas": spec.replicas,
        "selector": {"matchLabels": selector},
        "serviceName": name,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate"},
        "template": {
            "metadata": {
                "labels": {**spec.labels, **selector},
                "annotations": {**_config_digest(monitor, inputs), **spec.annotations},
            },
            "spec": _pod(monitor, inputs, shard),
        },
    }
    if spec.persistent:
        body["volumeClaimTemplates"] = [claim_template(VOLUME, spec.storage, spec.storage_class_name)]
    return {"metadata": object_meta(monitor, name, selector, spec.annotations), "spec": body}


def _pod(monitor: TidbMonitor, inputs: Inputs, shard: int) -> Json:
    spec = monitor.spec
    merged = with_additional_containers(list(_containers(monitor, shard)), spec.additional_containers)
    # as in v1.6, Grafana comes last, after the user's containers
    containers = sorted(merged, key=lambda each: bool(each["name"] == "grafana"))
    volumes = list(_volumes(monitor))
    if spec.automount_service_account_token is False:
        volumes.append(token_volume())
        containers = [
            container | {"volumeMounts": [*container.get("volumeMounts", ()), TOKEN_MOUNT]} for container in containers
        ]
    return without_unset(
        {
            "initContainers": init_containers(monitor, inputs),
            "containers": containers,
            "volumes": volumes,
            "serviceAccountName": monitor_name(monitor),
            "automountServiceAccountToken": spec.automount_service_account_token,
            "imagePullSecrets": spec.image_pull_secrets,
            "nodeSelector": spec.node_selector,
            "tolerations": spec.tolerations,
            "securityContext": spec.pod_security_context,
            "restartPolicy": "Always",
        }
    )


def _containers(monitor: TidbMonitor, shard: int) -> Iterator[Json]:
    spec = monitor.spec
    yield prometheus(monitor, shard)
    yield reloader(monitor)
    if spec.thanos is not None:
        yield thanos(monitor, spec.thanos)
    if spec.prometheus_reloader is not None:
        yield config_reloader(monitor, spec.prometheus_reloader, shard)
    if spec.grafana is not None:
        yield grafana(monitor, spec.grafana)


def _volumes(monitor: TidbMonitor) -> Iterator[Json]:
    spec = monitor.spec
    if not spec.persistent:
        yield _empty(VOLUME)
    yield _config_map("prometheus-config", monitor_name(monitor))
    if spec.grafana is not None:
        yield _empty("datasource")
        yield _config_map("dashboards-provisioning", grafana_config_name(monitor))
        yield _empty("grafana-dashboard")
    yield _empty("prometheus-rules")
    yield _empty("prometheus-config-out")
    yield from spec.additional_volumes
    yield {"name": "tls-assets", "secret": {"secretName": assets_name(monitor), "defaultMode": _READABLE}}
    config = spec.prometheus.config
    if config is not None and config.rule_config_ref is not None:
        yield _config_map("external-rules", config.rule_config_ref.name)
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        yield _config_map("operator", operator_config_name(monitor))


def _empty(name: str) -> Json:
    return {"name": name, "emptyDir": {}}


def _config_map(name: str, config_map: str) -> Json:
    return {"name": name, "configMap": {"name": config_map}}


def _config_digest(monitor: TidbMonitor, inputs: Inputs) -> dict[str, str]:
    if monitor.spec.prometheus_reloader is not None:
        return {}
    text = prometheus_yml(monitor, inputs)
    return {CONFIG_DIGEST: hashlib.sha256(text.encode()).hexdigest()[:16]}
