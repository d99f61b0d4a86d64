"""Kubernetes retries StatefulSets with missing pods soon after the obstacle is gone."""

from collections.abc import Iterator

import pytest

from kube.objects import Json
from kube.resources import NODES, PODS, STATEFUL_SETS, Resource
from member.labels import REQUEUED_AT
from sandbox.apiserver.refusals import forbidden
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample

pytestmark = pytest.mark.slow


@pytest.fixture(name="world")
def _world() -> Iterator[OperatorWorld]:
    world = OperatorWorld()
    yield world
    world.stop()


def five_members(world: OperatorWorld) -> None:
    tree = sample("basic")
    tree["spec"]["pd"]["replicas"] = 5
    world.apply(tree)
    world.run_until_ready(within=120.0)


def requeues(world: OperatorWorld) -> int:
    """The number of writes that have set only the annotation."""
    calls = (entry.call for entry in world.world.server.audit.recent())
    ours = (call for call in calls if call.user == OPERATOR and call.is_write)
    return sum(REQUEUED_AT in (call.request.body or b"").decode() for call in ours)


def test_pods_refused_by_a_quota_exist_within_five_minutes_of_its_end(world: OperatorWorld) -> None:
    """Kubernetes alone retries after 655 s, and after 1,310 s."""
    allow = world.world.faults.creation_refused("pods", "basic-tikv-*")
    world.apply(sample("basic"))
    world.run(700.0)
    allow()
    world.run_until_ready(within=330.0)


@pytest.mark.parametrize("component", ["pump", "tikv"])
def test_ordered_pods_refused_by_a_quota_exist_within_five_minutes_of_its_end(
    world: OperatorWorld, component: str
) -> None:
    tree = sample("basic")
    tree["spec"]["pump"] = {"replicas": 2, "requests": {"storage": "1Gi"}}
    tree["spec"]["tikv"] |= {"podManagementPolicy": "OrderedReady", "replicas": 2}
    world.apply(tree)
    world.run_until_ready(within=120.0)
    allow = world.world.faults.creation_refused("pods", f"basic-{component}-*")
    world.admin.delete(PODS, f"basic-{component}-1", NAMESPACE)
    world.run(700.0)
    allow()
    world.run_until_ready(within=330.0)


def test_writes_become_rare_while_pods_are_refused(world: OperatorWorld) -> None:
    world.world.faults.creation_refused("pods", "basic-tikv-*")
    world.apply(sample("basic"))
    world.run(1300.0)
    assert 5 <= requeues(world) <= 10


def test_pods_blocked_by_an_older_stateful_sets_pod_exist_soon_after_its_end(world: OperatorWorld) -> None:
    five_members(world)
    node = world.get(PODS, "basic-pd-1")["spec"]["nodeName"]
    start = world.world.faults.host_gone(f"{NAMESPACE}/basic-pd-1")
    world.run(60.0)
    world.admin.delete(STATEFUL_SETS, "basic-pd", NAMESPACE)
    world.run(1200.0)
    assert 0 == requeues(world)

    world.admin.delete(NODES, node)
    start()

    world.run_until_ready(within=90.0)
    assert 1 == requeues(world)


def test_starting_and_rolling_a_cluster_needs_no_requeue(world: OperatorWorld) -> None:
    five_members(world)
    world.change(pd={"annotations": {"roll": "1"}})
    world.run(5.0)
    world.run_until_ready(within=300.0)
    assert 0 == requeues(world)


def test_a_requeue_changes_no_template_although_a_webhook_changes_each_write(world: OperatorWorld) -> None:
    five_members(world)
    world.world.faults.creation_refused("pods", "basic-pd-4")
    world.admin.delete(PODS, "basic-pd-4", NAMESPACE)
    world.world.faults.webhook("variable")
    before = world.get(STATEFUL_SETS, "basic-pd")["metadata"]["generation"]
    world.run(120.0)
    assert before == world.get(STATEFUL_SETS, "basic-pd")["metadata"]["generation"]


def test_reports_refused_pods_although_the_requeue_is_refused_too(world: OperatorWorld) -> None:
    """As with a policy on pods that also applies to their controllers."""
    five_members(world)
    world.world.faults.creation_refused("pods", "basic-pd-4")
    world.admin.delete(PODS, "basic-pd-4", NAMESPACE)

    def policy(of: Resource, tree: Json, old: Json | None) -> None:
        if of == STATEFUL_SETS and old is not None:
            raise forbidden(of, tree["metadata"]["name"], "admission webhook denied the request")

    world.world.server.webhooks.append(policy)
    reasons = set()
    world.run(10.0)
    for _ in range(60):
        world.run(2.0)
        reasons.add(world.reason())
    assert {"PodsNotReady"} == reasons


def test_says_why_pods_are_missing_although_the_stateful_set_cannot_be_written(
    world: OperatorWorld,
) -> None:
    world.world.faults.creation_refused("pods", "basic-tikv-*")
    world.apply(sample("basic"))
    world.run_until(lambda: world.exists(STATEFUL_SETS, "basic-tikv"))
    world.world.faults.webhook("away")
    world.run_until(lambda: "basic-tikv-0 (FailedCreate: " in world.condition("Progressing")["message"])
    for _ in range(20):
        world.run(5.0)
        assert "basic-tikv-0 (FailedCreate: " in world.condition("Progressing")["message"]
