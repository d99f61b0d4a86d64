"""All desired objects of a monitor, by resource; other objects that it owns are deleted (other-resources.md 3.3)."""

from collections.abc import Iterator

from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
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
from member.monitor import grafana, pods, services
from member.monitor.configuration import prometheus_yml
from member.monitor.inputs import Inputs
from member.monitor.naming import (
    APP,
    assets_name,
    base_labels,
    cluster_role_name,
    monitor_name,
    object_meta,
    operator_config_name,
)

Desired = tuple[Resource, Json]
_RULES: list[Json] = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


def rights(monitor: TidbMonitor) -> Iterator[Desired]:
    """The service account and its rights."""
    yield SERVICE_ACCOUNTS, service_account(monitor)
    yield CLUSTER_ROLES if monitor.spec.cluster_scoped else ROLES, role(monitor)
    yield CLUSTER_ROLE_BINDINGS if monitor.spec.cluster_scoped else ROLE_BINDINGS, role_binding(monitor)


def reached_by(monitor: TidbMonitor) -> Iterator[Desired]:
    """The Services of all shards."""
    for shard in range(monitor.spec.shards or 1):
        for each in services.services(monitor, shard):
            yield SERVICES, each


def entered_by(monitor: TidbMonitor) -> Iterator[Desired]:
    """The Ingresses."""
    for each in services.ingresses(monitor):
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


def role(monitor: TidbMonitor) -> Json:
    """The Role, or the ClusterRole of a monitor that is clusterScoped."""
    return {"metadata": _meta(monitor), "rules": _RULES}


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
