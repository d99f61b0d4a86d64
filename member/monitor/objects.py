"""Services and Ingresses of a monitor (other-resources.md 3.4)."""

from collections.abc import Iterator, Mapping, Sequence

from apis.monitor_parts import IngressSpec
from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from apis.shared import ServiceSpec
from kube.objects import Json
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    INGRESSES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from member.labels import COMPONENT, INSTANCE, NAME, USED_BY
from member.monitor import containers, grafana, pods
from member.monitor.configuration import prometheus_yml
from member.monitor.containers import PROMETHEUS_PORT, RELOADER_PORT
from member.monitor.naming import (
    APP,
    Inputs,
    assets_name,
    base_labels,
    cluster_role_name,
    monitor_name,
    object_meta,
    operator_config_name,
    service_name,
)
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


Desired = tuple[Resource, Json]
_RULES: list[Json] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]

SECURITY_CONTEXT_CONSTRAINTS = Resource(
    "security.openshift.io", "v1", "securitycontextconstraints", "SecurityContextConstraints", namespaced=False
)
_RULES_OF_OPENSHIFT: list[Json] = [
    {
        "apiGroups": [SECURITY_CONTEXT_CONSTRAINTS.group],
        "resources": [SECURITY_CONTEXT_CONSTRAINTS.plural],
        "resourceNames": ["anyuid"],
        "verbs": ["use"],
    }
]


def rights(monitor: TidbMonitor, *, on_openshift: bool = False) -> Iterator[Desired]:
    """The service account and its rights; on OpenShift its pods may have any user, as in v1.6."""
    yield SERVICE_ACCOUNTS, service_account(monitor)
    further = _RULES_OF_OPENSHIFT if on_openshift else []
    yield CLUSTER_ROLES if monitor.spec.cluster_scoped else ROLES, role(monitor, further)
    yield CLUSTER_ROLE_BINDINGS if monitor.spec.cluster_scoped else ROLE_BINDINGS, role_binding(monitor)


def reached_by(monitor: TidbMonitor) -> Iterator[Desired]:
    """The Services of all shards."""
    for shard in range(monitor.spec.shards or 1):
        for service in services(monitor, shard):
            yield SERVICES, service


def entered_by(monitor: TidbMonitor) -> Iterator[Desired]:
    """The Ingresses."""
    for each in ingresses(monitor):
        yield INGRESSES, each


def configured_by(monitor: TidbMonitor, inputs: Inputs) -> Iterator[Desired]:
    """The ConfigMaps and Secrets that pods mount."""
    yield SECRETS, assets(monitor, inputs)
    yield CONFIG_MAPS, prometheus_config(monitor, inputs)
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        yield CONFIG_MAPS, operator_config(monitor, inputs)
    if monitor.spec.grafana is not None:
        yield CONFIG_MAPS, grafana.provisioning(monitor)
        yield SECRETS, grafana.admin_secret(monitor, monitor.spec.grafana)


def run_by(monitor: TidbMonitor, inputs: Inputs) -> Iterator[Desired]:
    """The StatefulSets of all shards."""
    for shard in range(monitor.spec.shards or 1):
        yield STATEFUL_SETS, pods.stateful_set(monitor, inputs, shard)


def everything(monitor: TidbMonitor, inputs: Inputs) -> Iterator[Desired]:
    """All objects."""
    yield from rights(monitor)
    yield from reached_by(monitor)
    yield from configured_by(monitor, inputs)
    yield from run_by(monitor, inputs)
    yield from entered_by(monitor)


def prometheus_config(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The ConfigMap with the configuration of Prometheus, the same for all shards."""
    labels = base_labels(monitor) | {APP: "prometheus"}
    return {
        "metadata": object_meta(monitor, monitor_name(monitor), labels),
        "data": {"prometheus.yml": prometheus_yml(monitor, inputs)},
    }


def operator_config(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The ConfigMap with the alerts and the dashboard of the operator itself."""
    return {
        "metadata": object_meta(monitor, operator_config_name(monitor)),
        "data": {
            "tidb-operator.rules.yml": inputs.operator_rules,
            "tidb-operator.json": inputs.operator_dashboard,
        },
    }


def assets(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The Secret with certificates and passwords; it exists even if it is empty."""
    return {
        "metadata": object_meta(monitor, assets_name(monitor)),
        "type": "Opaque",
        "data": dict(sorted(inputs.assets.items())),
    }


def service_account(monitor: TidbMonitor) -> Json:
    """The service account of the pods."""
    token = monitor.spec.automount_service_account_token
    account: Json = {"metadata": object_meta(monitor, monitor_name(monitor))}
    return account if token is None else account | {"automountServiceAccountToken": token}


def role(monitor: TidbMonitor, further: Sequence[Json] = ()) -> Json:
    """The Role, or the ClusterRole of a monitor that is clusterScoped, with `further` rules."""
    return {"metadata": _meta(monitor), "rules": [*_RULES, *further]}


def role_binding(monitor: TidbMonitor) -> Json:
    """The binding of the role to the pods' service account."""
    kind: Resource = CLUSTER_ROLES if monitor.spec.cluster_scoped else ROLES
    meta = _meta(monitor)
    return {
        "metadata": meta,
        "roleRef": {"apiGroup": kind.group, "kind": kind.kind, "name": meta["name"]},
        "subjects": [
            {"kind": "ServiceAccount", "name": monitor_name(monitor), "namespace": monitor.metadata.namespace}
        ],
    }


def _meta(monitor: TidbMonitor) -> Json:
    """Metadata of a role or binding. A namespaced monitor cannot own cluster-scoped objects."""
    if monitor.spec.cluster_scoped:
        meta = monitor.metadata
        return {"name": cluster_role_name(meta.namespace, meta.name), "labels": base_labels(monitor)}
    return object_meta(monitor, monitor_name(monitor))
