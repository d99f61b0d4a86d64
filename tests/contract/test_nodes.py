"""Pods whose node is not ready, is tainted, or has gone, in a world without a kubelet."""

from typing import Any

import pytest

from kube.objects import Json
from kube.resources import EVENTS, NODES, PODS
from sandbox.conditions import condition
from tests.contract.objects import pod
from tests.contract.worlds import Side, eventually, throughout

_UNREACHABLE = "node.kubernetes.io/unreachable"


class Machine:
    """A node without a kubelet, and the pods that are bound to it: nothing changes there that the test does not."""

    def __init__(self, world: Side, namespace: str) -> None:
        self.client = world.client
        self.namespace = namespace
        self.name = f"machine-of-{namespace}"

    def be(self, status: str) -> None:
        """Become Ready or not: True, False, Unknown."""
        self._status(NODES, self.name, "", [{"type": "Ready", "status": status}])

    def taint(self, *taints: Json) -> None:
        """Give the node these taints, beside the control plane's."""
        there = [each for each in self.taints() if "kubernetes.io" in each["key"]]
        self.client.patch(NODES, self.name, "", {"spec": {"taints": [*there, *taints]}})

    def taints(self) -> list[Json]:
        found: list[Json] = self.client.get(NODES, self.name).decode()["spec"].get("taints") or []
        return found

    def effects(self) -> set[tuple[str, str]]:
        return {(each["key"], each["effect"]) for each in self.taints()}

    def run(self, name: str, **spec: Any) -> None:
        """A pod is bound to it, and is said to be Ready."""
        body = pod(name)
        body["spec"] |= {"nodeName": self.name, **spec}
        self.client.create(PODS, body, self.namespace)
        self._status(PODS, name, self.namespace, [{"type": "Ready", "status": "True"}])

    def condition(self, name: str, kind: str) -> Json:
        """A condition of a pod, without its times; empty if there is none."""
        status = self.client.get(PODS, name, self.namespace).decode()["status"]
        found = condition(status.get("conditions"), kind) or {}
        return {key: value for key, value in found.items() if key in ("status", "reason", "message")}

    def is_leaving(self, name: str) -> bool:
        """True if a pod is Terminating. Raises NotFound."""
        return self.client.get(PODS, name, self.namespace).metadata.deletion_timestamp is not None

    def told(self, name: str, reason: str) -> set[tuple[str, str]]:
        """Events about a pod, as type and message."""
        selector = f"involvedObject.name={name},reason={reason}"
        found = [each.decode() for each in self.client.list_page(EVENTS, self.namespace, field_selector=selector).items]
        return {(each["type"], each["message"]) for each in found}

    def _status(self, resource: Any, name: str, namespace: str, conditions: list[Json]) -> None:
        self.client.patch(resource, name, namespace, {"status": {"conditions": conditions}}, subresource="status")


@pytest.fixture
def machine(world: Side, namespace: str) -> Any:
    """A Ready one."""
    made = Machine(world, namespace)
    world.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": made.name}})
    made.be("True")
    eventually(lambda: not made.taints())
    yield made
    world.client.delete(NODES, made.name)


def tolerating(key: str, seconds: int | None = None) -> Json:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}


def test_pods_of_a_lost_machine_stay_and_then_stay_terminating(machine: Machine) -> None:
    machine.run("patient")
    machine.run("impatient", tolerations=[tolerating(_UNREACHABLE, 2)])

    machine.be("Unknown")

    eventually(lambda: machine.effects() == {(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")})
    eventually(lambda: machine.is_leaving("impatient"))
    assert throughout(3, lambda: machine.is_leaving("impatient") and not machine.is_leaving("patient"))


def test_pods_of_a_machine_that_is_out_of_service_are_gone(machine: Machine) -> None:
    """Kubernetes checks every 20 s."""
    machine.run("lost")
    machine.be("Unknown")
    eventually(lambda: machine.effects() == {(_UNREACHABLE, "NoSchedule"), (_UNREACHABLE, "NoExecute")})

    taints = [*machine.taints(), {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    machine.client.patch(NODES, machine.name, "", {"spec": {"taints": taints}})

    eventually(lambda: machine.client.find(PODS, "lost", machine.namespace) is None)


def test_a_node_that_is_not_ready_is_tainted_by_its_condition(machine: Machine) -> None:
    machine.be("False")
    key = "node.kubernetes.io/not-ready"
    eventually(lambda: machine.effects() == {(key, "NoSchedule"), (key, "NoExecute")})

    machine.be("True")
    eventually(lambda: not machine.taints())

    machine.client.patch(NODES, machine.name, "", {"spec": {"unschedulable": True}})
    eventually(lambda: machine.effects() == {("node.kubernetes.io/unschedulable", "NoSchedule")})


def test_pods_leave_a_node_whose_taint_they_do_not_tolerate(machine: Machine) -> None:
    machine.run("stranger")
    machine.run("guest", tolerations=[tolerating("maintenance", 3)])
    machine.run("resident", tolerations=[tolerating("maintenance")])
    machine.run("of-all", tolerations=[{"operator": "Exists"}])

    machine.taint({"key": "maintenance", "value": "today", "effect": "NoExecute"})

    eventually(lambda: machine.is_leaving("stranger"))
    assert not machine.is_leaving("guest")
    expected = {
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    assert expected == machine.condition("stranger", "DisruptionTarget")
    said = {("Normal", f"Marking for deletion Pod {machine.namespace}/stranger")}
    eventually(lambda: machine.told("stranger", "TaintManagerEviction") == said)
    eventually(lambda: machine.is_leaving("guest"))
    assert throughout(2, lambda: not machine.is_leaving("resident") and not machine.is_leaving("of-all"))


def test_a_taint_that_is_removed_in_time_evicts_no_pod(machine: Machine) -> None:
    machine.run("guest", tolerations=[tolerating("maintenance", 2)])
    machine.taint({"key": "maintenance", "effect": "NoExecute"})
    machine.taint()

    assert throughout(3, lambda: not machine.is_leaving("guest"))
