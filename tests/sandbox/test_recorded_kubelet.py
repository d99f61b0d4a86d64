"""The sandbox's kubelet reports the statuses that `tests.sandbox.record_kubelet` recorded of a real one.

It may omit momentary ones.
"""

import json
from collections import defaultdict
from collections.abc import Mapping

import pytest

from kube.resources import NODES, PODS, SECRETS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.timings import Timings
from sandbox.world import World
from tests.sandbox.clusters import NAMESPACE
from tests.sandbox.kubelet_pods import DELETED, DELETED_AT, END, MADE_AT, SECRET, SPECS, Told, pods
from tests.sandbox.record_kubelet import RECORDING


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Mapping[str, list[str]]]:
    found: Mapping[str, Mapping[str, list[str]]] = json.loads(RECORDING.read_text())
    return found


@pytest.fixture(scope="module")
def told() -> Mapping[str, Told]:
    """The record of each pod in the sandbox."""
    world = World(FakeClock(), SeededRandomness(1), timings=Timings.real())
    world.faults.image_missing("*:missing")
    world.run_until_settled()
    client, before = world.client(), world.server.storage.version
    for pod in pods(client.list_page(NODES).items[0].metadata.name):
        client.create(PODS, pod, NAMESPACE)
    world.advance(DELETED_AT)
    client.delete(PODS, DELETED, NAMESPACE)
    world.advance(MADE_AT - DELETED_AT)
    client.create(SECRETS, {"metadata": {"name": SECRET}, "stringData": {"k": "v"}}, NAMESPACE)
    world.advance(END - MADE_AT)
    found: Mapping[str, Told] = defaultdict(Told)
    for change in world.server.storage.changes_after(str(PODS), before):
        pod = change.stored.tree()
        of_pod = found[pod["metadata"]["name"]]
        of_pod.end() if change.type == "DELETED" else of_pod.add(pod)
    world.stop()
    return found


@pytest.mark.parametrize("name", SPECS)
def test_statuses_of_a_pod_match_the_recorded_ones(
    name: str, told: Mapping[str, Told], recorded: Mapping[str, Mapping[str, list[str]]]
) -> None:
    assert recorded[name].keys() == told[name].parts.keys()
    for part, lines in told[name].parts.items():
        real = recorded[name][part]
        assert real[-1] == lines[-1]
        left = iter(real)
        assert [] == [line for line in lines if line not in left], part
