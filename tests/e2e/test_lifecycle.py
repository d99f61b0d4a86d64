"""From nothing to Ready and back to nothing, with the rights of our own manifests (design.md 4, lifecycle.md 1.5)."""

import pytest

from kube.client import Client
from kube.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
)
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, delete_cluster, sample

pytestmark = [pytest.mark.slow, IN_ONE_WORLD]

_KINDS = (
    SERVICES,
    CONFIG_MAPS,
    STATEFUL_SETS,
    DEPLOYMENTS,
    ROLES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    CONTROLLER_REVISIONS,
    REPLICA_SETS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
)
_IN_EVERY_NAMESPACE = {"ConfigMap kube-root-ca.crt", "ServiceAccount default"}


@pytest.mark.parametrize("name", ["basic", pytest.param("advanced", marks=pytest.mark.thorough)])
def test_a_sample_gets_ready_and_leaves_only_its_claims(place: Place, namespace: str, name: str) -> None:
    client = place.client
    with place.gate() as gate, operators.running(place.new_log(), place.environment(gate)) as operator:
        tree = sample(name)
        create_cluster(client, tree, namespace)
        await_ready(place, operator, name, namespace)
        assert [] == [call for call in gate.calls if call.status == 403]
        claims = {each for each in _objects(client, namespace) if each.startswith("PersistentVolumeClaim ")}
        assert len(claims) >= tree["spec"]["pd"]["replicas"] + tree["spec"]["tikv"]["replicas"]

        delete_cluster(client, name, namespace)
        eventually(lambda: _objects(client, namespace) == claims, told=lambda: _objects(client, namespace) - claims)
        gate.await_quiet()
        assert claims == _objects(client, namespace)
    assert [] == [event for event in operator.events if event["level"] in ("error", "critical")]


def _objects(client: Client, namespace: str) -> set[str]:
    found = {f"{kind.kind} {each.metadata.name}" for kind in _KINDS for each in client.list_page(kind, namespace).items}
    return found - _IN_EVERY_NAMESPACE
