"""A cluster gets larger volumes, is suspended and resumed: its data stays where it is (lifecycle.md 10.2, 12, F10)."""

import pytest

from kube.client import Client
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, conditions, create_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.thorough, IN_ONE_WORLD]


@pytest.mark.rule("R05")
def test_volumes_grow_under_running_pods_and_survive_a_suspension(place: Place, namespace: str) -> None:
    client = place.client
    with place.gate() as gate, operators.running(place.new_log(), place.environment(gate)) as operator:
        tree = sample("basic")
        tree["spec"]["tikv"]["replicas"] = 3
        create_cluster(client, tree, namespace)
        await_ready(place, operator, "basic", namespace, within=120.0)
        pods, claims = _uids(client, PODS, namespace), _uids(client, PERSISTENT_VOLUME_CLAIMS, namespace)
        uid = client.get(STATEFUL_SETS, "basic-tikv", namespace).metadata.uid

        _change(client, namespace, tikv={"requests": {"storage": "2Gi"}})

        def told() -> object:
            return _story(client, namespace), operator.said[-2000:]

        eventually(lambda: _template_size(client, namespace) == "2Gi", 60.0, told)
        eventually(lambda: _capacities(client, namespace) == {"2Gi"}, 60.0, told)
        await_ready(place, operator, "basic", namespace, within=60.0)
        gate.await_quiet()
        assert uid != client.get(STATEFUL_SETS, "basic-tikv", namespace).metadata.uid
        assert pods == _uids(client, PODS, namespace)
        assert 1 == len(_revisions(client, namespace))

        _change(client, namespace, suspendAction={"suspendStatefulSet": True})
        eventually(lambda: any("Suspended" in each for each in _story(client, namespace)), 90.0, told)
        assert not client.list_page(STATEFUL_SETS, namespace).items
        assert claims == _uids(client, PERSISTENT_VOLUME_CLAIMS, namespace)
        _change(client, namespace, suspendAction=None)
        await_ready(place, operator, "basic", namespace, within=120.0)
        assert claims == _uids(client, PERSISTENT_VOLUME_CLAIMS, namespace)
        assert [] == [call for call in gate.calls if call.status == 403]
    assert [] == [event for event in operator.events if event["level"] in ("error", "critical")]


@pytest.mark.rule("R23", "F47")
def test_claims_without_a_provisioner_are_recreated_after_a_correction(place: Place, namespace: str) -> None:
    client = place.client
    with operators.running(place.new_log(), place.environment()) as operator:
        tree = sample("basic")
        tree["spec"]["tikv"] |= {"storageClassName": "no-such-class", "requests": {"storage": "9Ti"}}
        create_cluster(client, tree, namespace)

        def told() -> object:
            return _story(client, namespace), operator.said[-2000:]

        eventually(lambda: any("no-such-class" in each for each in _story(client, namespace)), 60.0, told)
        _change(client, namespace, tikv={"storageClassName": None, "requests": {"storage": "1Gi"}})
        await_ready(place, operator, "basic", namespace, within=120.0)
    assert {"1Gi"} == _capacities(client, namespace)


def _change(client: Client, namespace: str, **spec: object) -> None:
    client.patch(TIDB_CLUSTERS, "basic", namespace, {"spec": spec})


def _story(client: Client, namespace: str) -> list[str]:
    return conditions(client, "basic", namespace)


def _uids(client: Client, resource: Resource, namespace: str) -> dict[str, str]:
    return {each.metadata.name: each.metadata.uid for each in client.list_page(resource, namespace).items}


def _tikv(client: Client, resource: Resource, namespace: str) -> list[Json]:
    selector = "app.kubernetes.io/component=tikv"
    return [each.decode() for each in client.list_page(resource, namespace, label_selector=selector).items]


def _template_size(client: Client, namespace: str) -> str:
    found = client.find(STATEFUL_SETS, "basic-tikv", namespace)
    if found is None:
        return ""
    return str(found.decode()["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"])


def _capacities(client: Client, namespace: str) -> set[str]:
    return {claim["status"]["capacity"]["storage"] for claim in _tikv(client, PERSISTENT_VOLUME_CLAIMS, namespace)}


def _revisions(client: Client, namespace: str) -> set[str]:
    status = client.get(STATEFUL_SETS, "basic-tikv", namespace).decode()["status"]
    pods = [pod["metadata"]["labels"]["controller-revision-hash"] for pod in _tikv(client, PODS, namespace)]
    return {status["updateRevision"], status["currentRevision"], *pods}
