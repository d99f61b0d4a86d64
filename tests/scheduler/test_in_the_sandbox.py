"""The sandbox's scheduler with the real extender (scheduler-deployment.md 2)."""

from collections import Counter
from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS
from member.labels import COMPONENT, POD_SCHEDULING
from tests.operator_world import OperatorWorld, sample


@pytest.fixture
def world() -> Iterator[OperatorWorld]:
    made = OperatorWorld()
    yield made
    made.stop()


def pods(world: OperatorWorld, component: str) -> list[Json]:
    return [each for each in world.every(PODS) if each["metadata"]["labels"].get(COMPONENT) == component]


def cluster(**pd: object) -> Json:
    made = sample("basic")
    made["spec"] |= {"schedulerName": "tidb-scheduler"}
    made["spec"]["pd"] |= pd
    return made


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-2.6")
def test_the_pods_of_a_cluster_are_spread_and_the_turns_end(world: OperatorWorld) -> None:
    world.apply(cluster(replicas=5))
    world.run_until_ready(within=300.0)
    found = Counter(pod["spec"]["nodeName"] for pod in pods(world, "pd"))
    assert [1, 2, 2] == sorted(found.values())
    assert {"tidb-scheduler"} == {pod["spec"]["schedulerName"] for pod in pods(world, "tikv")}
    world.run(60.0)
    claims = world.every(PERSISTENT_VOLUME_CLAIMS)
    assert [] == [each for each in claims if POD_SCHEDULING in each["metadata"].get("annotations", {})]


@pytest.mark.slow
@pytest.mark.rule("scheduler-deployment-2.5")
def test_without_room_a_pod_waits_and_status_and_events_say_why(world: OperatorWorld) -> None:
    world.apply(cluster(replicas=4))
    why = "unable to schedule to topology: "
    world.run_until(lambda: why in world.progressing, 60.0)
    assert 3 == sum("nodeName" in pod["spec"] for pod in pods(world, "pd"))
    told = {each["reason"] for each in world.every(EVENTS) if why in each["message"]}
    assert {"FailedScheduling", "HAScheduling"} <= told
