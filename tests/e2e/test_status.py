"""If the CRD has no status subresource, as v1.6's, the status is still patched alone (lifecycle.md 2.4)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from apis.crd import TIDB_CLUSTER, definition
from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, TIDB_CLUSTERS
from tests.e2e import operators, worlds
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = pytest.mark.slow

_NAMES = ("basic", "advanced")
_PLAIN = definition(TIDB_CLUSTER, status_subresource=False)


@pytest.fixture(params=["sandbox", pytest.param("real", marks=pytest.mark.controlplane)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A world whose CRD has no status subresource."""
    if request.param == "sandbox":
        with worlds.sandbox(tmp_path, crds=[_PLAIN]) as place:
            yield place
        return
    real: Place = request.getfixturevalue("real")
    with _defined(real, _PLAIN):
        yield real


@contextlib.contextmanager
def _defined(place: Place, crd: Json) -> Iterator[None]:
    _define(place, crd)
    try:
        yield
    finally:
        _define(place, worlds.CRD)


def _define(place: Place, crd: Json) -> None:
    versions = crd["spec"]["versions"]
    place.client.patch(CUSTOM_RESOURCE_DEFINITIONS, crd["metadata"]["name"], "", {"spec": {"versions": versions}})
    wanted = "subresources" in versions[0]
    eventually(lambda: wanted == _has_status(place))


def _has_status(place: Place) -> bool:
    served = msgspec.json.decode(place.client.request("GET", TIDB_CLUSTERS.root).body)
    return "tidbclusters/status" in [entry["name"] for entry in served["resources"]]


def test_without_the_subresource_the_status_is_patched_alone(place: Place) -> None:
    client = place.client
    with (
        place.namespace() as namespace,
        place.gate() as gate,
        operators.running(place.new_log(), place.environment(gate)) as operator,
    ):
        before = {name: _spec(place, create_cluster(client, sample(name), namespace), namespace) for name in _NAMES}
        for name in _NAMES:
            await_ready(place, operator, name, namespace)
        after = {name: _spec(place, name, namespace) for name in _NAMES}
    assert before == after
    patches = [call for call in gate.writes if call.resource.startswith("tidbclusters")]
    assert {("patch", "tidbclusters")} == {(call.verb, call.resource) for call in patches}
    for patch in patches:
        body = msgspec.json.decode(patch.body)
        assert {"metadata", "status"} == body.keys()
        assert {"uid", "resourceVersion"} == body["metadata"].keys()


class _WithSpec(msgspec.Struct):
    spec: msgspec.Raw


def _spec(place: Place, name: str, namespace: str) -> bytes:
    """The stored spec as the server writes it."""
    answer = place.client.request("GET", TIDB_CLUSTERS.path(namespace, name))
    return bytes(msgspec.json.decode(answer.body, type=_WithSpec).spec)
