"""A drill is true: the loss at its worst moment has the same effects in a world of the simulator."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kube.objects import Json
from rehearsal.damage import Damage, Failover, Outage, Spell
from rehearsal.drill import Drilled, Loss, When, drill, named
from rehearsal.forecast import Floor, Step
from simulate.engine.engine import Engine
from simulate.engine.plan import Edit, Plan
from simulate.engine.worlds import KEY, NAMESPACE
from simulate.families.generate import generated
from simulate.run import prepare
from simulate.truth import (
    changes,
    damages_differ,
    drill_comes_true,
    due_by,
    late,
    moment_of,
    struck,
    twin,
    untrue,
)

CHANGES: Mapping[str, tuple[str, Json]] = {
    "tidb": ("mortal-tidb", {"tidb": {"config": {"log": {"level": "warn"}}}}),
    "tikv": ("mortal-3-3", {"tikv": {"config": {"log-level": "warn"}}}),
    "pd": ("mortal-3-3", {"pd": {"config": {"log": {"level": "warn"}}}}),
}
"""Clusters on six machines whose operator fails over within a minute, and changes that restart pods, by component."""


def drilled(engine: Engine, plan: Plan, loss: Loss) -> Drilled:
    """The worst moment of a loss during a plan's change, on the twin of a world."""
    with twin(engine, plan) as (scene, after):
        return max(drill(scene, [after], loss, When(each=True)), key=lambda each: each.severity)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "kind", "seconds"),
    [
        pytest.param("tidb", "node", 0.0, marks=pytest.mark.thorough),
        pytest.param("tikv", "node", 0.0, marks=pytest.mark.thorough),
        pytest.param("pd", "node", 0.0, marks=pytest.mark.thorough),
        pytest.param("tikv", "pod", 0.0, marks=pytest.mark.thorough),
        pytest.param("pd", "pod", 90.0, marks=pytest.mark.thorough),
        ("tidb", "pod", 30.0),
        pytest.param("tikv", "operator", 20.0, marks=pytest.mark.thorough),
    ],
)
def test_the_worst_moment_of_a_drill_is_as_bad_in_the_world(change: str, kind: str, seconds: float) -> None:
    cluster, spec = CHANGES[change]
    plan = Plan(name="drill", cluster=cluster, edits=(Edit(at=0.0, spec=spec),))
    engine = prepare(plan)
    victim = f"basic-{change}-1"
    place = engine.world.kubelet.node_of(NAMESPACE, victim).name
    loss = Loss(kind, {"node": place, "pod": victim}.get(kind, ""), seconds)
    worst = drilled(engine, plan, loss)
    expected = worst.damages[f"TidbCluster {KEY}"]
    # databases serve without an operator, and this change leaves no spare for another loss
    assert (kind != "operator") is expected.stops
    steps = [worst.moment.step] if worst.moment.step else []
    assert not list(damages_differ(expected, struck(engine, plan, loss, steps).damage))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "flip/221",
        # its StatefulSets are deleted and recreated around their pods
        pytest.param("pair/pd-resize+tiflash-resize@0", marks=pytest.mark.thorough),
        # the pod is still there at the instant at which the rehearsal saw its restart begin
        "pair/pd-scale-out+pd-label@0",
        # a removal in progress looks like a restart
        pytest.param("pair/pd-scale-out+pd-scale-in@0", marks=pytest.mark.thorough),
        # a pod ends while the operator waits for PD, whose leader is lost
        pytest.param("pair/pd-scale-in+tikv-config@0", marks=pytest.mark.thorough),
        # the pod that is to be lost has left by then
        "pair/pd-scale-in+tidb-config@0",
        # without PD, captures lose their sessions, and do not listen until they have registered again
        pytest.param("pair/tikv-label+tici-worker-scale-out@0", marks=pytest.mark.thorough),
        pytest.param("pair/tidb-label+tici-worker-upgrade@0", marks=pytest.mark.thorough),
        # the operator calls the roll stuck after ten minutes
        pytest.param("pair/tikv-upgrade+tidb-config@0", marks=pytest.mark.thorough),
        # TiKV's pod, which is to be lost, restarts in the instant of that step or a tenth of a second later
        "order/tiproxy+ticdc+tls",
        # two pods without volumes are scheduled in one instant, or one after the other
        pytest.param("order/tiproxy+tiflash+ticdc+pdms", marks=pytest.mark.thorough),
        # a region can leave a store that is removed unless its only other place is on the lost machine
        pytest.param("pair/tikv-scale-in+pump-label@0", marks=pytest.mark.thorough),
        # a capture that moves tables stops late, while a store starts and gets its regions
        pytest.param("pair/tikv-scale-out+ticdc-config@0", marks=pytest.mark.thorough),
        # the lost member of PD returns as its substitute becomes Ready
        pytest.param("midway/pump-2.scale-out+2.node", marks=pytest.mark.thorough),
    ],
)
def test_a_drill_at_a_drawn_moment_comes_true(name: str) -> None:
    (plan,) = changes([generated(name)])
    assert not drill_comes_true(prepare(plan), plan).violations


PLANNED = [
    Step("basic-pd-0", "pd", "restarts", 0.0, 0.3),
    Step("basic-tiproxy-0", "tiproxy", "restarts", 1.25, 1.5),
    Step("basic-tikv-0", "tikv", "restarts", 1.35, 1.6),
    Step("basic-tidb-0", "tidb", "restarts", 6.0, 9.0),
]


@pytest.mark.parametrize(
    ("step", "count", "moment"),
    [
        ("restart of basic-tiproxy-0", 2, "restart of basic-tiproxy-0"),
        ("restart of basic-tiproxy-0", 3, "restart of basic-tikv-0"),
        # a plan whose order was wrong by seconds does not come true
        ("restart of basic-tiproxy-0", 4, "restart of basic-tikv-0"),
        ("restart of basic-tidb-0", 4, "restart of basic-tidb-0"),
        ("", 1, ""),
        ("", 2, "restart of basic-tiproxy-0"),
    ],
)
def test_a_drill_begins_with_the_steps_of_two_seconds_that_had_begun(step: str, count: int, moment: str) -> None:
    assert moment == moment_of(PLANNED[:count], step, PLANNED)


def test_a_drill_does_not_run_ahead_of_a_step_that_had_not_begun() -> None:
    first, _, tikv, tidb = PLANNED
    assert named(first) == moment_of([first, tikv, tidb], named(first), PLANNED)


def test_a_loss_waits_for_the_steps_that_are_planned_before_it() -> None:
    assert {named(step) for step in PLANNED[:3]} == due_by("restart of basic-tikv-0", PLANNED)
    assert {"restart of basic-pd-0"} == due_by("", PLANNED)


@pytest.mark.parametrize(
    ("at", "moments"), [(1.25, []), (1.0, []), (1.85, [When(at=1.85)]), (3.25, [When(at=3.25)]), (3.5, [])]
)
def test_a_step_that_is_at_most_two_seconds_late_is_drilled_at_its_second_too(at: float, moments: list[When]) -> None:
    assert moments == list(late(at, "restart of basic-tiproxy-0", PLANNED))


def test_no_second_is_later_than_the_end_of_the_change() -> None:
    assert [When(at=9.0)] == list(
        late(10.5, "restart of basic-tidb-0", [*PLANNED[:-1], replace(PLANNED[-1], begins=8.9)])
    )


def test_a_drill_is_untrue_if_no_moment_of_it_comes_true() -> None:
    assert ["one"] == untrue([["one"], ["other"]])
    assert not untrue([["one"], []])
    assert not untrue(iter([[]]))


def test_a_substitute_that_leaves_as_soon_as_it_serves_counts_as_none() -> None:
    leaves = Step("basic-pd-3", "pd", "leaves", 31.7, 31.8)
    served = Damage("done", "Done", "", 60.0, failovers=[Failover("basic-pd-2", "pd", 30.0, "basic-pd-3", 31.6)])
    unseen = replace(served, failovers=[Failover("basic-pd-2", "pd", 30.0)], steps=[replace(leaves, begins=30.0)])
    assert not list(damages_differ(replace(served, steps=[leaves]), unseen))
    assert 1 == len(list(damages_differ(replace(served, steps=[replace(leaves, begins=40.0)]), unseen)))


def test_each_effect_of_a_loss_is_compared() -> None:
    step = Step("basic-tikv-1", "tikv", "restarts", 0.0, 5.0)
    drilled = Damage("done", "Done", "", 60.0, [Outage("pd", 0.0, 9.0, 1, 2)], floors=[Floor("pd", 3, 1)], steps=[step])
    assert not list(damages_differ(drilled, replace(drilled, whole=65.0)))
    for what, happened in {
        "stops": replace(drilled, outages=[]),
        "regions": replace(drilled, spells=[Spell("without_majority", 0.0, None, 1, 3)]),
        "failovers": replace(drilled, failovers=[Failover("basic-pd-1", "pd", 9.0)]),
        "lowest": replace(drilled, floors=[Floor("pd", 3, 0)]),
        "restarts": replace(drilled, steps=[]),
        "whole": replace(drilled, whole=None),
        "end": replace(drilled, reason="NodeLost"),
    }.items():
        (found,) = damages_differ(drilled, happened)
        assert found.startswith(f"{what}: drilled ")
