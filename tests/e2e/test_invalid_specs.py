"""What a cluster says of itself while its spec is not valid, on both worlds (lifecycle.md 2.2)."""

import pytest

from kube.objects import Json
from kube.resources import PODS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = pytest.mark.slow

_FIELD = "spec.tikv.evictLeaderTimeout"


def test_with_all_pods_gone_the_status_says_so_and_names_the_field(place: Place, namespace: str) -> None:
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


def _ready(place: Place, namespace: str) -> Json:
    conditions: list[Json] = place.client.get(TIDB_CLUSTERS, "basic", namespace).decode()["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "Ready")
