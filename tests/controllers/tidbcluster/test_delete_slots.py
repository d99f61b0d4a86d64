"""Clusters in Advanced StatefulSets: delete slots, and the way between both kinds of StatefulSets (4.4)."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from apis.ordinals import slots_annotation
from kube.resources import ADVANCED_STATEFUL_SETS, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from manifests import ADVANCED_STATEFUL_SET
from member.context import Settings
from member.labels import LAST_APPLIED
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.apiserver.audit import Call
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from sandbox.world import load_crds
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, definitions, sample

OFF = SETTINGS
ON = replace(OFF, advanced_stateful_sets=True)
_COMPONENTS = {"basic-pd", "basic-tikv", "basic-tidb"}


class Outage:
    """Refuses the operator's writes to StatefulSets and their revisions once it has made so many."""

    def __init__(self) -> None:
        self.left: int | None = None

    def __call__(self, call: Call) -> Fault | None:
        concerns = call.resource.startswith(("statefulsets", "controllerrevisions"))
        if self.left is None or call.user != OPERATOR or not call.is_write or not concerns:
            return None
        self.left -= 1
        return Fault(refusal=Refusal(503, "ServiceUnavailable", "not now")) if self.left < 0 else None


@pytest.fixture
def outage() -> Outage:
    return Outage()


@pytest.fixture
def world(clock: FakeClock, outage: Outage) -> Iterator[OperatorWorld]:
    """A world with the controllers of both kinds of StatefulSets, and without the feature."""
    crds = [*definitions(), *load_crds(ADVANCED_STATEFUL_SET)]
    made = OperatorWorld(clock=clock, crds=crds, faults=outage)
    yield made
    made.stop()


def started(world: OperatorWorld, settings: Settings, **spec: object) -> OperatorWorld:
    """The sample with three TiKV pods, Ready."""
    body = sample("basic")
    body["spec"]["tikv"]["replicas"] = 3
    body["spec"]["pd"]["replicas"] = 3
    world.restart(settings)
    world.apply(body)
    world.run_until_ready(within=300.0)
    return world


def names(world: OperatorWorld, advanced: bool) -> set[str]:
    resource = ADVANCED_STATEFUL_SETS if advanced else STATEFUL_SETS
    return {each.metadata.name for each in world.admin.list_page(resource, NAMESPACE).items}


def pods(world: OperatorWorld) -> dict[str, str]:
    """The UIDs of the pods of StatefulSets, by name."""
    found = (each["metadata"] for each in world.every(PODS))
    return {meta["name"]: meta["uid"] for meta in found if "discovery" not in meta["name"]}


def ordinals(world: OperatorWorld, component: str) -> list[int]:
    stem = f"basic-{component}-"
    return sorted(int(name.removeprefix(stem)) for name in pods(world) if name.startswith(stem))


def want(world: OperatorWorld, component: str, replicas: int, slots: str | None, *expected: int) -> None:
    """Ask for pods by one edit, and wait until exactly the expected ones serve."""
    annotations = {slots_annotation(component): slots}
    patch = {"metadata": {"annotations": annotations}, "spec": {component: {"replicas": replicas}}}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, patch)
    world.run_until(lambda: [*expected] == ordinals(world, component), 900.0)
    world.run_until_ready(within=300.0)
    assert [*expected] == ordinals(world, component)


def owners(world: OperatorWorld) -> set[str]:
    found = (each["metadata"] for each in world.every(PODS) if "discovery" not in each["metadata"]["name"])
    return {owner["apiVersion"] for meta in found for owner in meta.get("ownerReferences", ())}


def revisions(world: OperatorWorld) -> dict[str, str]:
    """The group of the StatefulSet that controls each revision, by the UID of the revision."""
    found = (each["metadata"] for each in world.every(CONTROLLER_REVISIONS))
    return {meta["uid"]: (meta.get("ownerReferences") or [{"apiVersion": ""}])[0]["apiVersion"] for meta in found}


@pytest.mark.slow
@pytest.mark.rule("4.4")
@pytest.mark.parametrize("component", ["tikv", "pd", "tidb"])
def test_a_slot_takes_the_place_of_its_pod_and_gives_it_back(world: OperatorWorld, component: str) -> None:
    started(world, ON)
    assert (set(), _COMPONENTS) == (names(world, False), names(world, True))
    want(world, component, 3, "[1]", 0, 2, 3)
    want(world, component, 3, "[0]", 1, 2, 3)
    want(world, component, 3, None, 0, 1, 2)
    assert [] == world.defects


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_without_the_feature_a_slot_has_no_effect(world: OperatorWorld) -> None:
    started(world, OFF)
    before = pods(world)
    world.admin.patch(
        TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {slots_annotation("tikv"): "[1]"}}}
    )
    world.run(120.0)
    assert before == pods(world)
    assert (_COMPONENTS, set()) == (names(world, False), names(world, True))


@pytest.mark.slow
@pytest.mark.rule("4.4", "lifecycle-7.2")
def test_a_roll_passes_over_slots_and_reaches_pods_above_the_replicas(world: OperatorWorld) -> None:
    started(world, ON)
    want(world, "tikv", 3, "[1]", 0, 2, 3)
    before = pods(world)
    world.change(tikv={"annotations": {"rolled": "yes"}})
    world.run_until(lambda: world.reason() != "Done", 30.0)
    world.run_until_ready(within=900.0)
    after = pods(world)
    changed = {name for name in after if after[name] != before.get(name)}
    assert {"basic-tikv-0", "basic-tikv-2", "basic-tikv-3"} == changed


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_a_switch_of_the_feature_restarts_no_pod_and_keeps_the_revisions(world: OperatorWorld) -> None:
    started(world, OFF)
    before, history = pods(world), revisions(world).keys()
    for settings, there in ((ON, True), (OFF, False), (ON, True)):
        world.restart(settings)
        world.run_until_ready(within=120.0)
        world.run(60.0)
        kind = ADVANCED_STATEFUL_SETS if there else STATEFUL_SETS
        assert (_COMPONENTS, {kind.api_version}) == (names(world, there), owners(world))
        assert before == pods(world)
        assert history <= revisions(world).keys()
    assert [] == world.defects


@pytest.mark.slow
@pytest.mark.rule("4.4", "R01")
@pytest.mark.parametrize("back", [False, True])
def test_a_switch_may_be_interrupted_after_any_write(world: OperatorWorld, outage: Outage, back: bool) -> None:
    started(world, ON if back else OFF)
    before = pods(world)
    for number in range(20):
        outage.left = 1
        world.restart(OFF if back else ON)
        world.run(20.0)
        assert before == pods(world), f"after write {number}"
    outage.left = None
    world.restart()
    world.run_until_ready(within=120.0)
    world.run(60.0)
    assert (_COMPONENTS, set()) == (names(world, not back), names(world, back))
    assert before == pods(world)
    assert [] == world.defects


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_slots_in_use_keep_the_feature_from_being_switched_off(world: OperatorWorld) -> None:
    started(world, ON)
    want(world, "tikv", 3, "[1]", 0, 2, 3)
    before = pods(world)
    world.restart(OFF)
    world.run_until(lambda: world.reason() == "DeleteSlotsInUse", 60.0)
    assert "StatefulSet basic-tikv leaves out 1, which a native one cannot" in world.condition("Progressing")["message"]
    world.run(60.0)
    assert before == pods(world)
    assert "basic-tikv" in names(world, True)
    world.restart(ON)
    want(world, "tikv", 3, None, 0, 1, 2)
    world.restart(OFF)
    world.run_until_ready(within=300.0)
    assert ({STATEFUL_SETS.api_version}, [0, 1, 2]) == (owners(world), ordinals(world, "tikv"))


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_a_recreated_stateful_set_keeps_its_slots(world: OperatorWorld) -> None:
    started(world, ON)
    want(world, "tikv", 3, "[1]", 0, 2, 3)
    before = pods(world)
    world.admin.delete(ADVANCED_STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    world.forget()
    world.run(60.0)
    calls = [entry.call for entry in world.world.server.audit.recent() if entry.call.user == OPERATOR]
    bodies = [call.request.body for call in calls if call.verb == "create" and "statefulsets" in call.resource]
    made = [msgspec.json.decode(each or b"") for each in bodies if each and b"basic-tikv" in each]
    asked = {(each["spec"]["replicas"], each["metadata"]["annotations"].get("delete-slots")) for each in made}
    assert ({(3, "[1]")}, before) == (asked, pods(world))
    assert world.is_ready("basic")


def test_a_stateful_set_moves_in_four_writes_with_its_revisions(world: OperatorWorld) -> None:
    started(world, OFF)
    before = revisions(world).keys()
    world.forget()
    world.restart(ON)
    world.run_until_ready(within=120.0)
    advanced = "statefulsets.apps.pingcap.com"
    writes = [each.rpartition(" ")[0] for each in world.writes() if "statefulsets" in each or "revisions" in each]
    expected = [f"create {advanced}", f"patch {advanced}/status", "patch controllerrevisions.apps"]
    assert [*expected, "delete statefulsets.apps"] == writes[:4]
    assert before <= revisions(world).keys()
    assert {ADVANCED_STATEFUL_SETS.api_version} == {*revisions(world).values()}


def test_a_spoilt_annotation_of_a_move_ends_the_move(world: OperatorWorld) -> None:
    started(world, OFF)
    world.admin.patch(
        STATEFUL_SETS, "basic-tikv", NAMESPACE, {"metadata": {"annotations": {"tidb.pingcap.com/moved": "1"}}}
    )
    before = pods(world)
    world.run(60.0)
    live = world.get(STATEFUL_SETS, "basic-tikv")
    assert ("RollingUpdate", before) == (live["spec"]["updateStrategy"]["type"], pods(world))
    assert "tidb.pingcap.com/moved" not in live["metadata"]["annotations"]


@pytest.mark.slow
@pytest.mark.rule("4.4")
def test_slots_that_v1_6_has_written_give_their_pods_back(world: OperatorWorld) -> None:
    started(world, ON)
    want(world, "tikv", 3, "[1]", 0, 2, 3)
    annotations = world.get(ADVANCED_STATEFUL_SETS, "basic-tikv")["metadata"]["annotations"]
    record = msgspec.json.decode(annotations[LAST_APPLIED])
    del record["metadata"]  # v1.6 records the spec alone
    theirs = {LAST_APPLIED: msgspec.json.encode(record).decode()}
    world.admin.patch(ADVANCED_STATEFUL_SETS, "basic-tikv", NAMESPACE, {"metadata": {"annotations": theirs}})
    world.restart()
    want(world, "tikv", 3, None, 0, 1, 2)


@pytest.mark.slow
def test_a_cluster_is_not_ready_while_its_stateful_set_reports_no_status(world: OperatorWorld) -> None:
    """The controller of Advanced StatefulSets reports nothing while a pod cannot be created."""
    started(world, ON)
    world.admin.patch(PODS, "basic-tikv-1", NAMESPACE, {"metadata": {"finalizers": ["example.com/kept"]}})
    world.admin.delete(ADVANCED_STATEFUL_SETS, "basic-tikv", NAMESPACE)
    world.run(0.5)
    assert "status" not in world.get(ADVANCED_STATEFUL_SETS, "basic-tikv")
    ready = world.condition("Ready")
    assert ("False", "TiKVStoreNotUp") == (ready["status"], ready["reason"])


@pytest.mark.slow
@pytest.mark.rule("R28")
def test_the_wait_for_a_status_names_the_pod_on_a_lost_node(world: OperatorWorld) -> None:
    started(world, ON)
    node = world.get(PODS, "basic-tikv-2")["spec"]["nodeName"]
    world.world.faults.host_gone(f"{NAMESPACE}/basic-tikv-2")
    world.run(60.0)
    world.admin.delete(ADVANCED_STATEFUL_SETS, "basic-tikv", NAMESPACE)
    world.run(5.0)
    assert "status" not in world.get(ADVANCED_STATEFUL_SETS, "basic-tikv")
    progressing = world.condition("Progressing")
    assert "NodeLost" == progressing["reason"]
    assert f"pod basic-tikv-2 on node {node}, which is not Ready" in progressing["message"]
