"""One pod of a component is scheduled at a time (scheduler-deployment.md 2.5)."""

import pytest

from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from member.labels import POD_SCHEDULING, PVC_DEFER_DELETING
from tests.scheduler.worlds import NAMESPACE, ExtenderWorld


@pytest.fixture
def world() -> ExtenderWorld:
    made = ExtenderWorld()
    for ordinal in range(3):
        made.add(f"db-pd-{ordinal}")
    return made


def waits(world: ExtenderWorld, name: str, holder: str) -> bool:
    return {f"waiting for Pod default/{holder} scheduling"} == set(world.ask(name).refused.values())


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_pod_that_gets_nodes_has_its_turn(world: ExtenderWorld) -> None:
    assert world.ask("db-pd-1").kept
    assert ["pd-db-pd-1"] == world.marked()


@pytest.mark.rule("scheduler-deployment-2.5")
def test_other_pods_wait_and_the_pod_with_the_turn_continues_without_a_write(world: ExtenderWorld) -> None:
    world.ask("db-pd-1")
    before = world.admin.get(PERSISTENT_VOLUME_CLAIMS, "pd-db-pd-1", NAMESPACE).metadata.resource_version
    assert waits(world, "db-pd-0", "db-pd-1")
    assert world.ask("db-pd-1").kept
    assert before == world.admin.get(PERSISTENT_VOLUME_CLAIMS, "pd-db-pd-1", NAMESPACE).metadata.resource_version


@pytest.mark.rule("scheduler-deployment-2.5")
def test_components_do_not_wait_for_each_other(world: ExtenderWorld) -> None:
    world.ask("db-pd-1")
    world.add("db-tikv-0", "tikv")
    assert world.ask("db-tikv-0").kept


@pytest.mark.rule("scheduler-deployment-2.5")
def test_the_turn_ends_when_the_pod_has_a_node(world: ExtenderWorld) -> None:
    world.ask("db-pd-1")
    world.bind("db-pd-1", "a")
    assert ["b", "c"] == list(world.ask("db-pd-0").kept)
    assert ["pd-db-pd-0"] == world.marked()


@pytest.mark.rule("scheduler-deployment-2.5")
def test_the_turn_ends_with_its_pod_where_v1_6_waits_for_ever(world: ExtenderWorld) -> None:
    world.ask("db-pd-1")
    world.admin.delete(PODS, "db-pd-1", NAMESPACE, grace_period_seconds=0)
    assert world.ask("db-pd-0").kept


@pytest.mark.rule("scheduler-deployment-2.5")
def test_the_turn_ends_with_its_claim_deferred(world: ExtenderWorld) -> None:
    world.ask("db-pd-1")
    deferred = {"metadata": {"annotations": {PVC_DEFER_DELETING: "2026-01-01T00:00:00Z"}}}
    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, "pd-db-pd-1", NAMESPACE, deferred)
    assert world.ask("db-pd-0").kept


@pytest.mark.rule("scheduler-deployment-2.5")
def test_the_turn_ends_after_a_minute_in_any_case(world: ExtenderWorld) -> None:
    world.ask("db-pd-1")
    world.clock.step(60)
    assert waits(world, "db-pd-0", "db-pd-1")
    world.clock.step(1)
    assert world.ask("db-pd-0").kept
    assert ["pd-db-pd-0"] == world.marked()


@pytest.mark.parametrize("text", ["soon", "2999-01-01T00:00:00Z"])
@pytest.mark.rule("scheduler-deployment-2.5")
def test_ignores_a_mark_with_an_invalid_or_future_time(world: ExtenderWorld, text: str) -> None:
    mark = {"metadata": {"annotations": {POD_SCHEDULING: text}}}
    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, "pd-db-pd-1", NAMESPACE, mark)
    assert world.ask("db-pd-0").kept


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_refused_pod_does_not_block_others(world: ExtenderWorld) -> None:
    world.bind("db-pd-0", "a")
    world.ask("db-pd-1")
    assert not world.ask("db-pd-1", "a").kept
    assert [] == world.marked()
    assert world.ask("db-pd-2").kept


@pytest.mark.rule("scheduler-deployment-2.5")
def test_a_pod_without_claim_waits_for_it(world: ExtenderWorld) -> None:
    world.add_pod("db-pd-3")
    assert {"waiting for PersistentVolumeClaim default/pd-db-pd-3"} == set(world.ask("db-pd-3").refused.values())


@pytest.mark.rule("scheduler-deployment-2.5")
def test_claims_that_users_created_need_no_labels() -> None:
    world = ExtenderWorld()
    for ordinal in range(3):
        world.add(f"db-pd-{ordinal}", metadata={"labels": {}})
    assert ["a", "b", "c"] == list(world.ask("db-pd-1").kept)
    assert ["pd-db-pd-1"] == world.marked()
    assert waits(world, "db-pd-0", "db-pd-1")
    world.bind("db-pd-1", "a")
    assert ["b", "c"] == list(world.ask("db-pd-0").kept)
    assert ["pd-db-pd-0"] == world.marked()


@pytest.mark.parametrize("labels", [{}, None], ids=["unlabelled", "labelled"])
@pytest.mark.rule("scheduler-deployment-2.5")
def test_pods_are_read_after_the_claims_whose_marks_go_when_they_have_a_node(labels: dict[str, str] | None) -> None:
    world = ExtenderWorld()
    world.add("db-pd-0", metadata={} if labels is None else {"labels": labels})
    world.world.server.audit.clear()
    world.ask("db-pd-0")
    calls = [entry.call for entry in world.world.server.audit.recent() if entry.call.user == "extender"]
    reads = [each.resource.split(".")[0] for each in calls if each.verb in ("get", "list")]
    assert "persistentvolumeclaims" in reads
    last = len(reads) - 1 - reads[::-1].index("persistentvolumeclaims")
    assert "pods" in reads[last:]
