"""Runs of the simulator in which the operator has a defect."""

from collections.abc import Callable

import msgspec
import pytest

from controllers.stages import Stage
from controllers.tidbcluster import stages
from member import components
from member.context import ReconcileContext
from member.lifecycle.workload import Workload
from member.outcome import Done, Outcome
from simulate.engine.plan import Plan
from simulate.families.generate import generated
from simulate.run import Outcome as RunOutcome
from simulate.run import prepare, run

Plant = Callable[[], object]


def short(name: str, seconds: float = 60.0) -> Plan:
    """A workload with less time: a defect shows at once."""
    return msgspec.structs.replace(generated(name), budget=seconds)


def broken(plan: Plan, plant: Plant) -> RunOutcome:
    """The result of a plan when a defect is planted once its world is ready."""
    engine = prepare(plan)
    plant()
    return run(engine, plan)


def rules(plan: Plan, plant: Plant) -> set[str]:
    """The ids of the reported violations."""
    return {violation.rule for violation in broken(plan, plant).violations}


def rogue(act: Callable[[ReconcileContext], object], monkeypatch: pytest.MonkeyPatch) -> Plant:
    """A stage that does what no stage may."""

    def stage(ctx: ReconcileContext) -> Outcome:
        act(ctx)
        return Done()

    honest = stages.stages
    return lambda: monkeypatch.setattr(stages, "stages", lambda: (*honest(), Stage("rogue", stage)))


async def nothing(*_: object) -> None:
    """A step of a decision that is left out."""


def plant_workload(monkeypatch: pytest.MonkeyPatch, defective: Workload) -> None:
    """Another behaviour of a component."""
    monkeypatch.setitem(components._WORKLOADS, defective.name, defective)
