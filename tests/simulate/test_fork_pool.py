"""Plans in copies of the process that holds their world."""

import os
from collections.abc import Iterator
from typing import cast

import pytest

import simulate.fork_pool
from simulate.engine.engine import Engine
from simulate.engine.plan import Plan
from simulate.fork_pool import Broken, ForkPool
from simulate.run import Outcome

_PLANS = [Plan(name=each) for each in ("passes", "dies", "raises", "interrupted")]


@pytest.fixture(autouse=True)
def _world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate.fork_pool, "prepare", lambda _: cast(Engine, None))


def _work(_: Engine, plan: Plan) -> Outcome:
    if plan.name == "dies":
        os._exit(1)
    if plan.name == "raises":
        raise ValueError("a defect")
    if plan.name == "interrupted":
        raise KeyboardInterrupt
    return Outcome(plan, (), "digest", (), {}, {}, None, 0.0, {}, conflict=False)


def test_a_plan_whose_process_fails_is_broken_and_the_others_run_on() -> None:
    reports = {each.plan.name: each for each in ForkPool(_work, jobs=2).run(_PLANS)}
    broken = {name: each.why for name, each in reports.items() if isinstance(each, Broken)}
    assert {"passes", *broken} == reports.keys()
    assert {"dies", "raises", "interrupted"} == broken.keys()
    assert "without a value" in broken["dies"]
    assert "_work" in broken["raises"]
    assert "a defect" in broken["raises"]
    assert "KeyboardInterrupt" in broken["interrupted"]


def test_a_plan_keeps_its_key_in_its_report() -> None:
    (report,) = ForkPool(_work, jobs=1).run(_PLANS[:1])
    assert _PLANS[0].workload == report.plan.workload


def test_plans_are_drawn_as_their_turn_comes() -> None:
    drawn: list[str] = []

    def plans() -> Iterator[Plan]:
        for number in range(9):
            drawn.append(str(number))
            yield Plan(name="passes")

    reports = ForkPool(_work, jobs=1).run(plans())
    next(reports)
    assert ["0", "1"] == drawn
    assert 8 == len(list(reports))


def test_a_world_is_prepared_once_for_each_starting_point(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Plan] = []

    def prepare(plan: Plan) -> Engine:
        prepared.append(plan)
        return cast(Engine, plan)

    monkeypatch.setattr(simulate.fork_pool, "prepare", prepare)
    plans = [*_PLANS[:1] * 3, Plan(name="passes", cluster="other")]
    list(ForkPool(_work, jobs=2).run(plans))
    assert [plans[0], plans[3]] == prepared
