"""A roll that waits for room on a node costs PD little, and one of a broken pod costs Kubernetes little."""

import pytest

from kube.resources import STATEFUL_SETS
from sandbox.controllers.stateful_set import StatefulSets
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_LATEST = 10.0
"""The longest interval between two checks, in seconds."""
_LATE = 1.0
"""Seconds after which a busy Kubernetes observes a StatefulSet: the operator has then reconciled again."""


@pytest.mark.slow
def test_a_pod_that_no_node_takes_is_checked_less_and_less_often() -> None:
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    world.change(tidb={"schedulerName": "nobody"})
    world.run(200.0)
    assert "RollingUpdate" == world.reason()
    before = _questions(world)
    world.run(100.0)
    checks = _questions(world) - before
    world.stop()
    assert checks <= 100.0 / _LATEST + 4


@pytest.mark.slow
@pytest.mark.rule("F11", "lifecycle-7.1")
def test_a_broken_pod_is_replaced_however_late_kubernetes_observes_its_stateful_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, cluster = OperatorWorld(), sample("basic")
    cluster["spec"]["tidb"]["replicas"] = 2
    world.apply(cluster)
    world.run_until_ready()
    world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-tidb-0")
    world.run(30.0)
    world.forget()
    _delay(monkeypatch, world)
    world.change(tidb={"annotations": {"roll": "1"}})
    world.run(20.0)
    writes = [each for each in world.writes() if each.endswith((f"{STATEFUL_SETS} basic-tidb", "pods basic-tidb-0"))]
    world.stop()
    # to the new template, to OnDelete, after the deletion to a partition; the new pod gets a label
    patch = "patch statefulsets.apps"
    assert [patch, patch, "delete pods", patch, "patch pods"] == [each.rpartition(" ")[0] for each in writes]


def _delay(monkeypatch: pytest.MonkeyPatch, world: OperatorWorld) -> None:
    """Let Kubernetes look at StatefulSets at intervals."""
    honest, clock = StatefulSets.step, world.clock
    due: dict[int, float] = {}

    def step(controller: StatefulSets) -> float | None:
        if clock.now() >= due.setdefault(id(controller), clock.now() + _LATE):
            due[id(controller)] = clock.now() + _LATE
            honest(controller)
        return due[id(controller)]

    monkeypatch.setattr(StatefulSets, "step", step)


def _questions(world: OperatorWorld) -> int:
    """How often the operator has asked PD for its members, which it does in every reconcile."""
    return sum(each.url.endswith("/pd/api/v1/members") for each in world.operator.dataplane.requests)
