"""Services and Ingresses of a monitor (other-resources.md 3.4)."""

from collections.abc import Iterator, Mapping, Sequence

from apis.monitor_parts import IngressSpec
from apis.monitors import TidbMonitor
from apis.shared import ServiceSpec
from kube.objects import Json
from member.labels import COMPONENT, INSTANCE, NAME, USED_BY
from member.monitor import containers, grafana
from member.monitor.containers import PROMETHEUS_PORT, RELOADER_PORT
from member.monitor.naming import base_labels, monitor_name, object_meta, service_name
from member.objects.pod import without_unset
from member.objects.services import port

_SELECTING = (NAME, INSTANCE, COMPONENT)


def services(monitor: TidbMonitor, shard: int) -> Iterator[Json]:
    """The Services of a shard."""
    spec = monitor.spec
    of_thanos = [port("thanos-grpc", containers.GRPC_PORT), port("thanos-http", containers.HTTP_PORT)]
    ports = [
        port(spec.prometheus.service.port_name or "http-prometheus", PROMETHEUS_PORT),
        *(of_thanos if spec.thanos is not None else ()),
    ]
    yield _service(monitor, shard, "prometheus", spec.prometheus.service, ports=ports, used_by={USED_BY: "prometheus"})
    ports = [port(spec.reloader.service.port_name or "tcp-reloader", RELOADER_PORT)]
    yield _service(monitor, shard, "monitor-reloader", spec.reloader.service, ports=ports)
    if spec.grafana is not None:
        ports = [port(spec.grafana.service.port_name or "http-grafana", grafana.PORT)]
        yield _service(monitor, shard, "grafana", spec.grafana.service, ports=ports, used_by={USED_BY: "grafana"})
    yield _headless(monitor, shard)


def _service(
    monitor: TidbMonitor,
    shard: int,
    of: str,
    chosen: ServiceSpec,
    *,
    ports: Sequence[Json],
    used_by: Mapping[str, str] | None = None,
) -> Json:
    spec = without_unset(
        {
            "type": chosen.type or "ClusterIP",
            "ports": list(ports),
            "selector": _selector(monitor, shard),
            "clusterIP": chosen.cluster_ip,
            "loadBalancerIP": chosen.load_balancer_ip,
            "loadBalancerSourceRanges": chosen.load_balancer_source_ranges,
            "loadBalancerClass": chosen.load_balancer_class,
            **_families(monitor),
        }
    )
    labels = {**chosen.labels, **monitor.spec.labels, **base_labels(monitor), **(used_by or {})}
    annotations = {**chosen.annotations, **monitor.spec.annotations}
    return {"metadata": object_meta(monitor, service_name(monitor, of, shard), labels, annotations), "spec": spec}


def _headless(monitor: TidbMonitor, shard: int) -> Json:
    """The headless Service that the StatefulSet names, so that pods have DNS names; v1.6 creates none."""
    return {
        "metadata": object_meta(monitor, monitor_name(monitor, shard)),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "ports": [port("http-prometheus", PROMETHEUS_PORT)],
            "publishNotReadyAddresses": True,
            "selector": _selector(monitor, shard),
            **_families(monitor),
        },
    }


def _families(monitor: TidbMonitor) -> Json:
    return {"ipFamilyPolicy": "PreferDualStack"} if monitor.spec.prefer_ipv6 else {}


def _selector(monitor: TidbMonitor, shard: int) -> Json:
    labels = base_labels(monitor, shard)
    return {key: labels[key] for key in _SELECTING}


def ingresses(monitor: TidbMonitor) -> Iterator[Json]:
    """The Ingresses in the spec; they point to the first shard."""
    spec = monitor.spec
    if spec.prometheus.ingress is not None:
        yield _ingress(monitor, "prometheus", spec.prometheus.ingress, PROMETHEUS_PORT)
    if spec.grafana is not None and spec.grafana.ingress is not None:
        yield _ingress(monitor, "grafana", spec.grafana.ingress, grafana.PORT)


def _ingress(monitor: TidbMonitor, of: str, chosen: IngressSpec, number: int) -> Json:
    name = service_name(monitor, of)
    backend = {"service": {"name": name, "port": {"number": number}}}
    path = {"path": "/", "pathType": "ImplementationSpecific", "backend": backend}
    spec: Json = {"rules": [{"host": host, "http": {"paths": [path]}} for host in chosen.hosts]}
    if not chosen.hosts:
        spec = {"defaultBackend": backend}
    if chosen.tls:
        spec["tls"] = chosen.tls
    return {"metadata": object_meta(monitor, name, annotations=chosen.annotations), "spec": spec}
