"""A new version, and a version that does not exist and is taken back, in both worlds (lifecycle.md 7, F11)."""

import pytest

from kube.client import Client
from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample

pytestmark = [pytest.mark.slow, pytest.mark.thorough, IN_ONE_WORLD]

_COMPONENTS = ("pd", "tikv", "tidb")


@pytest.mark.rule("lifecycle-7.2", "F11")
def test_a_new_version_and_the_way_back_from_a_missing_image(place: Place, namespace: str) -> None:
    client = place.client
    with place.gate() as gate, operators.running(place.new_log(), place.environment(gate)) as operator:
        tree = sample("basic")
        for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
            tree["spec"][component]["replicas"] = replicas
        create_cluster(client, tree, namespace)
        await_ready(place, operator, "basic", namespace)

        begun, before = CLOCK.now(), _pods(client, namespace)
        _change(client, namespace, {"version": "v8.5.9"})
        eventually(
            lambda: _runs(client, namespace, "v8.5.9"), within=120.0, told=lambda: _conditions(client, namespace)
        )
        print(f"{place.name}: upgrade of 3/3/2 in {CLOCK.now() - begun:.1f} s")  # noqa: T201
        after = _pods(client, namespace)
        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())

        _change(client, namespace, {"tikv": {"nodeSelector": {"no-such": "label"}}})
        eventually(lambda: "basic-tikv-2 is Ready" in str(_conditions(client, namespace)))
        _change(client, namespace, {"tikv": {"nodeSelector": None}})
        eventually(lambda: _runs(client, namespace, "v8.5.9"), within=60.0, told=lambda: _conditions(client, namespace))
        kept = {name for name, uid in _pods(client, namespace).items() if after[name] == uid}
        if place.name == "real":
            # the sandbox keeps the empty nodeSelector, which causes another revision
            assert {"basic-tikv-2"} == after.keys() - kept
        assert [] == [call for call in gate.calls if call.status == 403]
    assert [] == [event for event in operator.events if event["level"] in ("error", "critical")]


def _change(client: Client, namespace: str, spec: Json) -> None:
    client.patch(TIDB_CLUSTERS, "basic", namespace, {"spec": spec})


def _pods(client: Client, namespace: str) -> dict[str, str]:
    found = client.list_page(PODS, namespace).items
    members = (pod for pod in found if pod.metadata.labels.get("app.kubernetes.io/component") in _COMPONENTS)
    return {pod.metadata.name: pod.metadata.uid for pod in members}


def _conditions(client: Client, namespace: str) -> list[Json]:
    status = client.get(TIDB_CLUSTERS, "basic", namespace).decode()["status"]
    return list(status["conditions"])


def _runs(client: Client, namespace: str, version: str) -> bool:
    """True if everything is Ready on a version and the operator has no work left."""
    for component in _COMPONENTS:
        body = client.get(STATEFUL_SETS, f"basic-{component}", namespace).decode()
        images = [each["image"] for each in body["spec"]["template"]["spec"]["containers"]]
        status = body["status"]
        if f"pingcap/{component}:{version}" not in images or status["currentRevision"] != status["updateRevision"]:
            return False
    found = {each["type"]: (each["status"], each["reason"]) for each in _conditions(client, namespace)}
    return found == {"Ready": ("True", "Ready"), "Progressing": ("False", "Done")}
