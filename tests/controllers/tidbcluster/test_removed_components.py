"""A component that is taken out of the spec while it runs (objects.md 1.1): it runs on, and the condition says so."""

import pytest

from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def pods(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def written(world: OperatorWorld) -> list[str]:
    return [write for write in world.writes() if "tidbclusters" not in write and "events" not in write]


@pytest.mark.slow
@pytest.mark.parametrize("component", ["pd", "tikv", "tidb"])
@pytest.mark.rule("objects-1.1")
def test_a_removed_component_keeps_running_and_the_condition_names_the_way_out(
    basic: OperatorWorld, component: str
) -> None:
    spec, before = basic.cluster()["spec"], pods(basic)
    basic.change(**{component: None})
    basic.run_until(lambda: basic.reason() == "ComponentRemoved")
    basic.run(120.0)

    message = basic.condition("Progressing")["message"]
    assert f"{component}: spec.{component} was removed, but StatefulSet basic-{component} still has replicas" in message
    assert (before, []) == (pods(basic), written(basic))
    assert [] == basic.operator.dataplane.writes()
    assert f"spec.{component} was removed" in basic.condition("Ready")["message"]

    basic.change(**{component: spec[component]})
    basic.run_until_ready()
    assert (before, []) == (pods(basic), written(basic))


@pytest.mark.slow
@pytest.mark.parametrize("component", ["tikv", "tidb"])
@pytest.mark.rule("objects-5")
def test_keeps_observing_the_status_of_a_removed_component(basic: OperatorWorld, component: str) -> None:
    basic.change(**{component: None})
    basic.run_until(lambda: basic.reason() == "ComponentRemoved")
    basic.world.faults.pod_crash_loop(f"default/basic-{component}-0")
    basic.run_until(lambda: not basic.is_ready(), 120.0)

    status: Json = basic.cluster()["status"][component]
    assert 0 == status["statefulSet"].get("readyReplicas", 0)
    assert "ComponentRemoved" == basic.reason()


@pytest.mark.slow
@pytest.mark.rule("objects-1.1")
def test_other_components_are_maintained_while_one_is_removed_from_the_spec(basic: OperatorWorld) -> None:
    basic.change(tidb=None, tikv={"replicas": 2})
    basic.run_until(lambda: len(basic.cluster()["status"]["tikv"]["stores"]) == 2)
    assert "ComponentRemoved" == basic.reason()


@pytest.mark.slow
@pytest.mark.rule("objects-1.1")
def test_restarts_no_pod_for_a_change_made_together_with_a_removal(basic: OperatorWorld) -> None:
    """Only the user knows which of both was meant."""
    spec, before = basic.cluster()["spec"], pods(basic)
    basic.change(tikv=None, pd={"config": {"log": {"level": "warn"}}})
    basic.run_until(lambda: basic.reason() == "ComponentRemoved")
    basic.run(60.0)
    assert (before, []) == (pods(basic), written(basic))

    basic.change(tikv=spec["tikv"])
    basic.run_until_ready()
    assert {name for name in before if pods(basic)[name] != before[name]} == {"basic-pd-0"}


@pytest.mark.slow
@pytest.mark.rule("F1")
def test_a_removed_component_missing_from_the_cache_keeps_running(basic: OperatorWorld) -> None:
    before = pods(basic)
    basic.change(tidb=None, pd={"config": {"log": {"level": "warn"}}})
    basic.run_until(lambda: basic.reason() == "ComponentRemoved")
    basic.operator.caches[STATEFUL_SETS].blind = True
    basic.operator.caches[STATEFUL_SETS].empty()
    basic.run(60.0)
    assert (before, []) == (pods(basic), written(basic))


@pytest.mark.slow
@pytest.mark.rule("objects-1.1")
def test_allows_the_removal_of_a_component_with_no_pods(basic: OperatorWorld) -> None:
    basic.change(tidb={"replicas": 0})
    basic.run_until_ready()
    basic.change(tidb=None)
    basic.run(60.0)

    assert ("Done", True) == (basic.reason(), basic.is_ready())
    status = basic.cluster()["status"]["tidb"]
    assert (None, None) == (status.get("statefulSet"), status.get("members"))


@pytest.mark.rule("objects-1.1")
def test_a_removal_ends_when_the_user_deletes_the_stateful_set(basic: OperatorWorld) -> None:
    basic.change(tidb=None)
    basic.run_until(lambda: basic.reason() == "ComponentRemoved")
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE)
    basic.run_until(lambda: basic.reason() == "Done")
    basic.run(40.0)

    status = basic.cluster()["status"]["tidb"]
    assert (None, None) == (status.get("statefulSet"), status.get("members"))


@pytest.mark.slow
@pytest.mark.rule("8.4")
def test_a_removal_during_a_scale_in_can_be_reverted(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["tikv"]["replicas"] = 4
    world.apply(cluster)
    world.run_until_ready(within=120.0)
    world.change(tikv={"replicas": 3})
    world.run_until(lambda: world.reason() == "ScalingIn")
    world.change(tikv=None)
    world.run_until(lambda: world.reason() == "ComponentRemoved")
    world.run(60.0)
    assert 4 == world.replicas("tikv")

    world.change(tikv=cluster["spec"]["tikv"] | {"replicas": 3})
    world.run_until_ready(within=300.0)
    assert 3 == world.replicas("tikv")
