"""The checks of Pump can fail: each test plants one defect, and the simulator must name the rule it breaks."""

from dataclasses import replace

import pytest

import member.pump.scaling
from apis.component_statuses import PumpStatus
from member.evidence import Evidence, spec_confirmed
from member.lifecycle.pod_removal import PodRemoval
from member.outcome import Waiting
from member.pump.component import PUMP
from member.tidb.component import TIDB
from simulate.engine.plan import Edit, Plan
from tests.simulate.planting import broken, nothing, plant_workload, rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def _scaled(replicas: int) -> Plan:
    return Plan(
        name="pump-in", cluster="binlog", budget=60.0, edits=(Edit(at=1.0, spec={"pump": {"replicas": replicas}}),)
    )


def test_reports_nothing_without_a_defect() -> None:
    assert set() == rules(_scaled(1), lambda: None)


@pytest.mark.rule("I3")
def test_reports_a_pump_pod_removed_before_its_node_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(removal: PodRemoval) -> Evidence | Waiting:
        return spec_confirmed(removal.ctx) or Waiting("SpecChanged", "later")

    scaling = replace(PUMP.scaling, in_=replace(PUMP.scaling.in_, drain=at_once))
    assert "I3-pump" in rules(_scaled(1), lambda: plant_workload(monkeypatch, replace(PUMP, scaling=scaling)))


@pytest.mark.rule("I41")
def test_reports_the_last_pump_node_closed_while_tidb_writes_binlogs(monkeypatch: pytest.MonkeyPatch) -> None:
    plant = lambda: monkeypatch.setattr(member.pump.scaling, "_still_needed", lambda *_: None)  # noqa: E731

    assert "I41-pump" in rules(_scaled(0), plant)


@pytest.mark.rule("I20")
def test_reports_tidb_created_before_a_pump_node_is_online(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = Edit(at=0.01, spec={"pump": {"nodeSelector": {"nowhere": "yes"}}})
    plan = Plan(name="no-pump", world="empty", cluster="binlog", budget=30.0, edits=(nowhere,))

    def plant() -> None:
        monkeypatch.setattr(PumpStatus, "is_available", lambda *_: True)
        plant_workload(monkeypatch, replace(TIDB, gate=nothing))

    found = [each.what for each in broken(plan, plant).violations if each.rule == "I20"]
    assert ["TiDB is created while no Pump node is online"] == found
