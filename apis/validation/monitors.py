"""Rules of TidbMonitor (defaults-and-validation.md 3.4, other-resources.md 3.2).

All problems are collected; v1.6 stops at the first. Additional rules report what Prometheus would refuse in its
configuration, or Kubernetes in every pod. The objects have their defaults.
"""

import re
from collections.abc import Iterator, Sequence

from apis import images
from apis.monitor_parts import MonitorContainer, RemoteWriteSpec, TLSConfig
from apis.monitors import CLUSTER_SELECTOR, OPERATOR_NAMESPACE, TidbMonitor, TidbMonitorSpec
from apis.problem import Problem
from apis.shared import Json, TidbClusterRef
from apis.validation import pods, prometheus_options, ranges, replica_limit
from ports import quantity

_DURATION = re.compile(r"(?=.)(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LABEL_HELP = "must be a label of Prometheus: letters, digits and `_`, and no digit first"
_DURATION_HELP = "must be a duration of Prometheus such as 15d or 1d12h"
_SELECTOR_FIELD = f"metadata.annotations[{CLUSTER_SELECTOR}]"


def validate_monitor(monitor: TidbMonitor) -> list[Problem]:
    """Everything that is wrong with a TidbMonitor."""
    spec = monitor.spec
    return [
        *_check_targets(monitor),
        *_check_selector(monitor),
        *_check_containers(spec),
        *pods.check_named(spec.additional_containers, "spec.additionalContainers"),
        *pods.check_named(spec.additional_volumes, "spec.additionalVolumes"),
        *_check_services(spec),
        *_check_storage(spec),
        *prometheus_options.check(spec),
        *_check_replicas(monitor),
        *_check_labels(spec),
        *_check_remote_write(spec),
    ]


def labels_selected_by(selector: str) -> dict[str, str]:
    """The labels of the TidbClusters that a selector selects; no labels select all. Raises ValueError."""
    terms = [] if selector.strip() == "*" else [each.strip() for each in selector.split(",")]
    pairs = [term.partition("=") for term in terms]
    if not all(key and sign for key, sign, _ in pairs):
        raise ValueError(selector)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _check_targets(monitor: TidbMonitor) -> Iterator[Problem]:
    spec = monitor.spec
    of_dm = spec.dm.clusters if spec.dm else []
    if not spec.clusters and not of_dm and CLUSTER_SELECTOR not in monitor.metadata.annotations:
        message = f"is empty; name a cluster here or in spec.dm.clusters, or select some by {CLUSTER_SELECTOR}"
        yield Problem("spec.clusters", None, message)
    for field, references in (("spec.clusters", spec.clusters), ("spec.dm.clusters", of_dm)):
        yield from _check_references(references, field)


def _check_references(references: Sequence[TidbClusterRef], field: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, each in enumerate(references):
        jobs = f"{each.namespace}-{each.name}"
        if not each.name:
            yield Problem(f"{field}[{index}].name", None, "is required")
        elif jobs in seen:
            message = "has scrape jobs of the same names as an entry before it; give it a monitor of its own"
            yield Problem(f"{field}[{index}].name", each.name, message)
        seen.add(jobs)


def _check_selector(monitor: TidbMonitor) -> Iterator[Problem]:
    annotations = monitor.metadata.annotations
    try:
        labels_selected_by(annotations.get(CLUSTER_SELECTOR, "*"))
    except ValueError:
        yield Problem(
            _SELECTOR_FIELD, annotations[CLUSTER_SELECTOR], "must be `*`, or labels such as team=a,stage=prod"
        )
    namespace = annotations.get(OPERATOR_NAMESPACE)
    if namespace is not None and namespace != monitor.metadata.namespace and not monitor.spec.cluster_scoped:
        message = "is another namespace, where Prometheus may see no pods; set spec.clusterScoped"
        yield Problem(f"metadata.annotations[{OPERATOR_NAMESPACE}]", namespace, message)


def _check_containers(spec: TidbMonitorSpec) -> Iterator[Problem]:
    containers: dict[str, MonitorContainer | None] = {
        "prometheus": spec.prometheus,
        "grafana": spec.grafana,
        "reloader": spec.reloader,
        "initializer": spec.initializer,
        "dm.initializer": spec.dm.initializer if spec.dm else None,
        "thanos": spec.thanos,
        "prometheusReloader": spec.prometheus_reloader,
    }
    for name, container in containers.items():
        if container is None:
            continue
        if not container.base_image:
            yield Problem(f"spec.{name}.baseImage", None, "is required; name the image without its tag")
        elif not container.version:
            yield Problem(f"spec.{name}.version", None, "is required; name the tag of the image")
        elif not images.is_reference(image := f"{container.base_image}:{container.version}"):
            yield Problem(f"spec.{name}.baseImage", image, "is no image; check baseImage and version")


def _check_services(spec: TidbMonitorSpec) -> Iterator[Problem]:
    services = {"prometheus": spec.prometheus.service, "reloader": spec.reloader.service}
    if spec.grafana is not None:
        services["grafana"] = spec.grafana.service
    for name, service in services.items():
        yield from ranges.check(service.load_balancer_source_ranges, f"spec.{name}.service.loadBalancerSourceRanges")


def _check_storage(spec: TidbMonitorSpec) -> Iterator[Problem]:
    retention = spec.prometheus.retention_time
    if retention is not None and retention != "0" and not _DURATION.fullmatch(retention):
        yield Problem("spec.prometheus.retentionTime", retention, _DURATION_HELP)
    if not spec.persistent:
        return
    try:
        size = quantity.parse(spec.storage)
    except ValueError:
        size = None
    if not size or not 0 < size <= quantity.LARGEST:
        yield Problem(
            "spec.storage", spec.storage, "must be the size of a volume such as 100Gi, as spec.persistent is set"
        )


def _check_replicas(monitor: TidbMonitor) -> Iterator[Problem]:
    limit = yield from replica_limit.limit_of(monitor.metadata.annotations)
    for field, wanted in (("spec.replicas", monitor.spec.replicas or 0), ("spec.shards", monitor.spec.shards or 0)):
        if wanted < 0:
            yield Problem(field, wanted, "must be at least 0")
        if wanted > limit:
            yield replica_limit.beyond(limit, wanted, field, "TidbMonitor")


def _check_labels(spec: TidbMonitorSpec) -> Iterator[Problem]:
    yield from pods.check_labels(spec.labels, "spec.labels")
    if spec.replica_external_label_name and not _LABEL.fullmatch(spec.replica_external_label_name):
        yield Problem("spec.replicaExternalLabelName", spec.replica_external_label_name, _LABEL_HELP)
    for name in spec.external_labels:
        if not _LABEL.fullmatch(name):
            yield Problem("spec.externalLabels", name, _LABEL_HELP)


def _check_remote_write(spec: TidbMonitorSpec) -> Iterator[Problem]:
    prometheus = spec.prometheus
    if prometheus.remote_write and images.order(prometheus.version) == images.NEWEST:
        message = "must be a version such as v2.49.1: what remoteWrite may say depends on it"
        yield Problem("spec.prometheus.version", prometheus.version, message)
    for index, each in enumerate(prometheus.remote_write):
        yield from _check_endpoint(each, f"spec.prometheus.remoteWrite[{index}]")


def _check_endpoint(endpoint: RemoteWriteSpec, field: str) -> Iterator[Problem]:
    if not endpoint.url:
        yield Problem(f"{field}.url", None, "is required")
    if endpoint.remote_timeout and not _DURATION.fullmatch(endpoint.remote_timeout):
        yield Problem(f"{field}.remoteTimeout", endpoint.remote_timeout, _DURATION_HELP)
    if endpoint.basic_auth is not None:
        for name, selector in (
            ("username", endpoint.basic_auth.username),
            ("password", endpoint.basic_auth.password),
        ):
            yield from _check_key(selector, f"{field}.basicAuth.{name}")
    if endpoint.tls_config is not None:
        yield from _check_tls(endpoint.tls_config, f"{field}.tlsConfig")


def _check_tls(tls: TLSConfig, field: str) -> Iterator[Problem]:
    for name, source in (("ca", tls.ca), ("cert", tls.cert)):
        if source.secret:
            yield from _check_key(source.secret, f"{field}.{name}.secret")
        elif source.config_map:
            yield from _check_key(source.config_map, f"{field}.{name}.configMap", "ConfigMap")
    if tls.key_secret is not None:
        yield from _check_key(tls.key_secret, f"{field}.keySecret")


def _check_key(selector: Json, field: str, kind: str = "Secret") -> Iterator[Problem]:
    """A selector names an object of a kind and a key of it."""
    for part in ("name", "key"):
        if not isinstance(selector.get(part), str) or not selector[part]:
            yield Problem(f"{field}.{part}", None, f"is required; name a {kind} and a key of it")
