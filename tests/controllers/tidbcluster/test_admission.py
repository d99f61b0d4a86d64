"""Admission webhooks change every write: that is neither a foreign edit to undo nor a change by the user."""

import pytest

from kube.resources import PODS, STATEFUL_SETS
from tests.operator_world import NAMESPACE, OperatorWorld, sample

pytestmark = pytest.mark.slow


def test_pod_templates_that_admission_changes_are_left_alone(world: OperatorWorld) -> None:
    for webhook in ("mirror-everywhere", "variable", "pod-label"):
        world.world.faults.webhook(webhook)
    world.apply(sample("basic"))
    world.run_until_ready()
    world.run(30.0)
    world.forget()
    world.run(180.0)
    assert ([], "Done") == (world.writes(), world.reason())
    assert [] == world.events("ForeignEdit")


@pytest.mark.parametrize("webhook", ["mirror-everywhere", "variable", "toleration", "pod-label"])
@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.rule("I42")
def test_neither_a_restart_of_the_operator_nor_foreign_edits_restart_pods_that_a_webhook_has_changed(
    world: OperatorWorld, webhook: str, is_silent: bool
) -> None:
    leave = world.world.faults.webhook(webhook)
    world.apply(sample("basic"))
    world.run_until_ready()
    world.change(tikv={"annotations": {"roll": "1"}})
    world.run(5.0)
    world.run_until_ready(within=120.0)
    before = _uids(world)
    if is_silent:
        leave()
    world.restart()
    world.run(60.0)
    assert (before, []) == (_uids(world), world.events("ForeignEdit"))
    for spec in ({"replicas": 2}, {"revisionHistoryLimit": 5}):
        world.admin.patch(STATEFUL_SETS, "basic-pd", NAMESPACE, {"spec": spec})
        world.run(60.0)
    assert before == _uids(world)
    assert "Done" == world.reason()


def _uids(world: OperatorWorld) -> dict[str, str]:
    """The UIDs of all pods but Discovery's, by name."""
    pods = (pod["metadata"] for pod in world.every(PODS) if "discovery" not in pod["metadata"]["name"])
    return {meta["name"]: meta["uid"] for meta in pods}


@pytest.mark.rule("11.5")
def test_a_statefulset_is_created_once_although_admission_changes_its_claim_templates(world: OperatorWorld) -> None:
    world.world.faults.webhook("storage-class")
    world.apply(sample("basic"))
    world.run_until_ready()
    world.run(180.0)
    # the pods of PD, TiKV and TiDB
    assert (3, "Done") == (world.writes().count("create statefulsets.apps "), world.reason())


def test_a_roll_restarts_each_pod_once_though_a_webhook_leaves_in_the_middle(world: OperatorWorld) -> None:
    leave = world.world.faults.webhook("variable")
    body = sample("basic")
    body["spec"]["tikv"]["replicas"] = 3
    world.apply(body)
    world.run_until_ready()
    world.change(tikv={"config": {"log": {"level": "warn"}}})
    world.run_until(lambda: 1 == len(_restarts(world)))
    leave()
    world.run_until_ready(within=300.0)
    assert ["basic-tikv-2", "basic-tikv-1", "basic-tikv-0"] == _restarts(world)


def _restarts(world: OperatorWorld) -> list[str]:
    """The TiKV pods that the StatefulSet controller has deleted, in order."""
    calls = (
        each.call for each in world.world.server.audit.recent() if each.call.user.endswith("statefulset-controller")
    )
    return [call.name for call in calls if (call.verb, call.resource) == ("delete", str(PODS)) and "tikv" in call.name]
