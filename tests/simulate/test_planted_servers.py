"""The judge notices when servers are restarted that others rely on: one defect in each test."""

from dataclasses import replace

import pytest

from member.components import workload
from member.lifecycle import stateless
from member.lifecycle.rolling import Rolling
from tests.simulate.planting import plant_workload, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


@pytest.mark.rule("I43")
def test_reports_a_roll_that_treats_a_ready_pod_as_a_serving_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in v1.6, TiProxy has no probe, so its pods are Ready before it serves."""
    defective = replace(workload("tiproxy"), rolling=Rolling())
    assert "I43" in rules(short("tiproxy-upgrade"), lambda: plant_workload(monkeypatch, defective))


@pytest.mark.rule("I45")
def test_reports_a_capture_restarted_with_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in v1.6, an error from the list of captures counts as an empty list."""
    defective = replace(workload("ticdc"), rolling=Rolling())
    assert "I45" in rules(short("ticdc-upgrade"), lambda: plant_workload(monkeypatch, defective))


@pytest.mark.rule("I45")
def test_reports_a_capture_removed_with_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    defective = replace(workload("ticdc"), scaling=stateless.SCALING)
    assert "I45" in rules(short("ticdc-in"), lambda: plant_workload(monkeypatch, defective))
