"""Delete slots, and moves between both kinds of StatefulSets; and what the judge notices of them: one defect each."""

from collections.abc import Callable

import pytest

import member.apply.stateful_set
import member.lifecycle.creation
from apis.ordinals import slots_annotation
from kube.objects import Json, Object
from member.actions import Delete
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Plan
from simulate.engine.worlds import SLOTTED, SWITCHED
from simulate.families.generate import generated
from tests.simulate.planting import rules

pytestmark = pytest.mark.slow


def wish(at: float, component: str, replicas: int, slots: str) -> Edit:
    annotations = {slots_annotation(component): slots}
    return Edit(at=at, spec={component: {"replicas": replicas}}, annotations=annotations)


def plan(cluster: str, *edits: Edit, faults: tuple[plans.Fault, ...] = ()) -> Plan:
    return Plan(name="slots", cluster=cluster, budget=900.0, edits=edits, faults=faults, reference=False)


_IN_PLACE = plan(SLOTTED, wish(1.0, "tikv", 3, "[1]"))
_ON = plan(SWITCHED, faults=(plans.Feature(at=1.0, on=True),))
_OFF_WITH_SLOTS = plan(SLOTTED, wish(1.0, "tikv", 3, "[1]"), faults=(plans.Feature(at=300.0, on=False),))


@pytest.mark.parametrize("name", ["slots/1", "slots/4", "slots/66", "switch/1", "switch/6"])
def test_slots_and_switches_harm_no_cluster(name: str) -> None:
    assert set() == rules(generated(name), lambda: None)


@pytest.mark.planted
@pytest.mark.parametrize("honest", [_IN_PLACE, _ON])
def test_reports_nothing_without_a_defect(honest: Plan) -> None:
    assert set() == rules(honest, lambda: None)


@pytest.mark.planted
@pytest.mark.rule("I3")
def test_reports_a_scale_in_that_removes_the_highest_pod_instead_of_the_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(body: Json, _: object) -> Json:
        return body | {"metadata": body["metadata"] | {"annotations": {}}}

    plant = lambda: monkeypatch.setattr(member.apply.stateful_set, "with_slots", without)  # noqa: E731

    assert "I3" in rules(_IN_PLACE, plant)


@pytest.mark.planted
def test_reports_a_move_that_deletes_the_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_pods(seen: object, why: object, _: str) -> Delete:
        return Delete(seen, why, "Background")  # type: ignore[arg-type]

    plant = lambda: monkeypatch.setattr(member.lifecycle.creation, "Delete", with_pods)  # noqa: E731

    assert "O11" in rules(_ON, plant)


@pytest.mark.planted
@pytest.mark.rule("I3")
def test_reports_a_move_to_a_kind_that_cannot_leave_out_the_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    plant: Callable[[], None] = lambda: monkeypatch.setattr(member.lifecycle.creation, "_gaps", lambda _: None)  # noqa: E731

    assert "I3" in rules(_OFF_WITH_SLOTS, plant)


@pytest.mark.planted
def test_reports_a_move_that_leaves_the_pods_with_the_revision_of_the_other_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def as_they_are(_client: object, own: Object, _former: object) -> Object:
        return own

    plant = lambda: monkeypatch.setattr(member.lifecycle.creation, "_with_renamed_revisions", as_they_are)  # noqa: E731

    assert "I42" in rules(_ON, plant)
