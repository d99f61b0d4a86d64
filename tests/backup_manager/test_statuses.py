"""Conditions, progress and operations in a status (backup.md 3.2, 3.3)."""

from datetime import UTC, datetime, timedelta

import pytest

from backup_manager.br_log import OperationLine, ProgressLine
from backup_manager.statuses import (
    Condition,
    with_condition,
    with_fields,
    with_operation,
    with_progress,
)
from kube.objects import Json

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
AT, THEN = "2026-01-01T12:00:00Z", "2026-01-01T12:01:00Z"


@pytest.mark.rule("backup-3.3")
def test_a_condition_becomes_the_phase() -> None:
    status = with_condition({}, Condition("Prepare"), NOW)
    assert {
        "phase": "Prepare",
        "conditions": [{"type": "Prepare", "status": "True", "lastTransitionTime": AT}],
    } == status


@pytest.mark.rule("backup-3.3")
def test_restart_never_becomes_the_phase() -> None:
    status = with_condition({"phase": "Running"}, Condition("Restart"), NOW)
    assert "Running" == status["phase"]
    assert ["Restart"] == [each["type"] for each in status["conditions"]]


@pytest.mark.rule("backup-3.3")
def test_old_conditions_stay_true_and_the_same_one_twice_changes_nothing() -> None:
    status = with_condition(with_condition({}, Condition("Prepare"), NOW), Condition("Running"), NOW)
    assert ["True", "True"] == [each["status"] for each in status["conditions"]]
    assert status == with_condition(status, Condition("Running"), LATER)


@pytest.mark.rule("backup-3.3")
def test_another_message_keeps_the_time_of_the_transition() -> None:
    status = with_condition({}, Condition("Failed", "A", "a"), NOW)
    status = with_condition(status, Condition("Failed", "A", "b"), LATER)
    assert [{"type": "Failed", "status": "True", "lastTransitionTime": AT, "reason": "A", "message": "b"}] == status[
        "conditions"
    ]


@pytest.mark.rule("backup-3.3")
def test_back_to_a_phase_takes_a_new_time() -> None:
    status: Json = {}
    for type_, when in (("Running", NOW), ("RetryFailed", NOW), ("Running", LATER)):
        status = with_condition(status, Condition(type_), when)
    assert [THEN, AT] == [each["lastTransitionTime"] for each in status["conditions"]]


@pytest.mark.rule("backup-3.3")
def test_a_condition_that_was_false_becomes_true_with_a_new_time() -> None:
    clean = {"type": "Clean", "status": "False", "lastTransitionTime": AT}
    status = with_condition({"phase": "Clean", "conditions": [clean]}, Condition("Clean"), LATER)
    assert [{"type": "Clean", "status": "True", "lastTransitionTime": THEN}] == status["conditions"]


@pytest.mark.rule("backup-3.2")
def test_a_known_step_is_only_raised_and_a_new_one_ends_the_last() -> None:
    status = with_progress({}, ProgressLine("Full Backup", 40), NOW)
    assert status == with_progress(status, ProgressLine("Full Backup", 30), LATER)
    status = with_progress(status, ProgressLine("Full Backup", 60), LATER)
    status = with_progress(status, ProgressLine("Checksum", 5), LATER)
    assert [
        {"step": "Full Backup", "progress": 100, "lastTransitionTime": THEN},
        {"step": "Checksum", "progress": 5, "lastTransitionTime": THEN},
    ] == status["progresses"]


@pytest.mark.rule("backup-3.2")
def test_operations_are_the_newest_ten_each_once() -> None:
    status: Json = {}
    for number in [*range(12), 5, 11]:
        status = with_operation(status, OperationLine(str(number), AT, "restore"), NOW)
    assert [str(number) for number in range(11, 1, -1)] == [each["operationID"] for each in status["brOperations"]]
    first = {"operationID": "11", "startedAt": AT, "command": "restore", "observedAt": AT}
    assert first == status["brOperations"][0]


@pytest.mark.rule("backup-3.2")
def test_time_taken_follows_from_start_and_end() -> None:
    assert "1m0s" == with_fields({"timeStarted": AT}, {"timeCompleted": THEN})["timeTaken"]
    assert "timeTaken" not in with_fields({}, {"timeCompleted": THEN})


def test_keeps_fields_of_other_versions() -> None:
    status: Json = {"newField": {"a": 1}, "conditions": [{"type": "Scheduled", "status": "True", "x": 1}]}
    changed = with_condition(status, Condition("Prepare"), NOW)
    assert {"a": 1} == changed["newField"]
    assert status["conditions"][0] == changed["conditions"][0]
