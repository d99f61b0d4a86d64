"""The checks of schedules can fail: each test plants one defect, and the simulator must name the rule it breaks."""

import msgspec
import pytest

from controllers.backup_schedule import snapshots
from simulate.engine.plan import Plan
from simulate.families.generate import generated
from tests.simulate.planting import rules

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def _short(name: str, seconds: float) -> Plan:
    return msgspec.structs.replace(generated(name), budget=seconds)


@pytest.mark.rule("5.1")
def test_reports_two_backups_of_a_group_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant() -> None:
        monkeypatch.setattr(snapshots, "unfinished", lambda *_: [])

    assert "schedule-one" in rules(_short("schedule/group", 70.0), plant)


@pytest.mark.rule("5.1")
def test_reports_a_due_backup_that_is_never_created(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant() -> None:
        monkeypatch.setattr(snapshots, "_make", lambda *_: ((True, "Made", ""), None))

    assert "schedule-missed" in rules(_short("schedule/steady", 140.0), plant)
