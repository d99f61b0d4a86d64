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
from member.monitor import config_maps, grafana, pods, rbac, services
from member.monitor.inputs import Inputs

Desired = tuple[Resource, Json]


def rights(monitor: TidbMonitor) -> Iterator[Desired]:
    """The service account and its rights."""
    yield SERVICE_ACCOUNTS, rbac.service_account(monitor)
    yield CLUSTER_ROLES if monitor.spec.cluster_scoped else ROLES, rbac.role(monitor)
    yield CLUSTER_ROLE_BINDINGS if monitor.spec.cluster_scoped else ROLE_BINDINGS, rbac.role_binding(monitor)


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
    yield SECRETS, config_maps.assets(monitor, inputs)
    yield CONFIG_MAPS, config_maps.prometheus_config(monitor, inputs)
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        yield CONFIG_MAPS, config_maps.operator_config(monitor, inputs)
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
