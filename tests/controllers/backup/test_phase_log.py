"""The log reports the progress of Backups, regardless of which program wrote the status."""

from collections.abc import MutableMapping
from typing import Any

from structlog.testing import capture_logs

from kube.resources import JOBS
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

Line = tuple[str, ...]


def told(logs: list[MutableMapping[str, Any]]) -> list[Line]:
    """Phases and trouble."""
    return [
        (log["event"], log.get("before", ""), log["phase"])
        for log in logs
        if log["event"] in ("phase changed", "condition")
    ]


def test_each_phase_is_logged_once_with_the_duration_of_the_previous_one(backups: BackupsWorld) -> None:
    with capture_logs() as logs:
        backups.add()
        backups.run(10)
        backups.say("Running")
        backups.run(60)
        backups.say("Complete")
        backups.end(kind="Complete", reason="CompletionsReached")
        backups.run(60)
    assert [("phase changed", "Scheduled", "Running"), ("phase changed", "Running", "Complete")] == [
        each for each in told(logs) if each[0] == "phase changed"
    ]
    last = next(log for log in logs if log.get("phase") == "Complete")
    assert ("Backup", 60.0) == (last["kind"], last["seconds"])


def test_a_problem_that_the_operator_finds_is_logged_with_its_cause_only(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Running")
    with capture_logs() as logs:
        backups.admin.delete(JOBS, "backup-demo", NAMESPACE, propagation="Background")
        backups.run(60)
    assert [("condition", "", "Failed")] == told(logs)


def test_a_problem_that_the_pod_reports_is_logged_as_well(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Running")
    with capture_logs() as logs:
        backups.say("Failed")
        backups.run(60)
    assert [("phase changed", "Running", "Failed")] == told(logs)


def test_phases_from_before_a_restart_are_not_logged(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Running")
    backups.restart()
    with capture_logs() as logs:
        backups.run(60)
    assert [] == told(logs)
