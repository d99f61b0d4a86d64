"""The status of a cluster while its spec is invalid (lifecycle.md 2.2)."""

import pytest

from kube.objects import Json, condition_of
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = [pytest.mark.slow, IN_ONE_WORLD]

_FIELD = "spec.tikv.evictLeaderTimeout"


def test_a_cluster_without_pods_says_so_and_names_the_field(place: Place, namespace: str) -> None:
    client = place.client
    with (
        place.gate() as gate,
        operators.running(place.new_log(), place.environment(gate)) as operator,
    ):
        name = create_cluster(client, sample("basic"), namespace)
        await_ready(place, operator, name, namespace)
        client.patch(TIDB_CLUSTERS, name, namespace, {"spec": {"tikv": {"evictLeaderTimeout": "soon"}}})
        eventually(lambda: _FIELD in _ready(place, namespace)["message"])
        for pod in client.list_page(PODS, namespace).items:
            client.delete(PODS, pod.metadata.name, namespace)

        eventually(lambda: _ready(place, namespace)["status"] == "False", within=10.0)
        assert _FIELD in _ready(place, namespace)["message"]
        eventually(lambda: _ready(place, namespace)["status"] == "True", within=60.0)
        assert _FIELD in _ready(place, namespace)["message"]


def test_a_cluster_that_was_never_valid_is_not_ready_and_names_the_field(place: Place, namespace: str) -> None:
    tree = sample("basic")
    tree["spec"]["tikv"]["evictLeaderTimeout"] = "soon"
    with place.gate() as gate, operators.running(place.new_log(), place.environment(gate)):
        create_cluster(place.client, tree, namespace)
        eventually(lambda: _says(place, namespace) == ("False", True), within=10.0)


def test_a_new_process_reports_missing_workloads(place: Place, namespace: str) -> None:
    client = place.client
    with place.gate() as gate:
        with operators.running(place.new_log(), place.environment(gate)) as operator:
            name = create_cluster(client, sample("basic"), namespace)
            await_ready(place, operator, name, namespace)
            client.patch(TIDB_CLUSTERS, name, namespace, {"spec": {"tikv": {"evictLeaderTimeout": "soon"}}})
            eventually(lambda: _says(place, namespace) == ("True", True))
        for each in client.list_page(STATEFUL_SETS, namespace).items:
            client.delete(STATEFUL_SETS, each.metadata.name, namespace)
        with operators.running(place.new_log(), place.environment(gate)):
            eventually(lambda: _says(place, namespace) == ("False", True), within=20.0)


def _says(place: Place, namespace: str) -> tuple[str, bool]:
    """The status of Ready, and True if its message names the field."""
    ready = _ready(place, namespace)
    return ready.get("status", ""), _FIELD in ready.get("message", "")


def _ready(place: Place, namespace: str) -> Json:
    status: Json = place.client.get(TIDB_CLUSTERS, "basic", namespace).decode().get("status") or {}
    return condition_of(status.get("conditions") or (), "Ready")
