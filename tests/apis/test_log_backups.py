"""The due sub-command of a log backup, and the overall status from its conditions (backup.md 3.8)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from apis import log_backups
from apis.log_backups import PAUSE, RESUME, START, STOP, TRUNCATE, LogCondition
from apis.shared import Json
from tests.apis.backups import backup, by_br

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = "2026-01-01T00:00:00Z"


def due(phase: str = "", commit: str = "100", status: Json | None = None, **spec: Any) -> str:
    found = backup(by_br(backupMode="log", **spec)).spec
    return log_backups.due(found, {"phase": phase, "commitTs": commit, **(status or {})})


@pytest.mark.parametrize(
    ("phase", "spec", "command"),
    [
        ("", {}, START),
        ("Running", {}, START),
        ("Running", {"logSubcommand": "log-start"}, START),
        ("Running", {"logStop": True}, STOP),
        ("Running", {"logSubcommand": "log-stop"}, STOP),
        ("Stopped", {}, STOP),
        ("Stopped", {"logSubcommand": "log-start"}, STOP),
        ("Stopped", {"logSubcommand": "log-pause"}, STOP),
        ("Running", {"logSubcommand": "log-pause"}, PAUSE),
        ("Paused", {"logSubcommand": "log-pause"}, PAUSE),
        ("Paused", {}, RESUME),
        ("Paused", {"logSubcommand": "log-start"}, RESUME),
        ("Paused", {"logStop": True}, STOP),
        ("Running", {"logTruncateUntil": "200"}, TRUNCATE),
        ("Paused", {"logSubcommand": "log-pause", "logTruncateUntil": "200"}, TRUNCATE),
        ("Paused", {"logTruncateUntil": "200"}, RESUME),
        ("Stopped", {"logTruncateUntil": "200"}, TRUNCATE),
        ("Running", {"logStop": True, "logTruncateUntil": "200"}, STOP),
    ],
)
@pytest.mark.rule("backup-3.8")
def test_the_due_command_follows_from_spec_and_phase(phase: str, spec: Json, command: str) -> None:
    assert command == due(phase, **spec)


@pytest.mark.rule("backup-3.8")
def test_a_log_backup_starts_before_it_is_paused_or_stopped() -> None:
    """v1.6 waits forever for a log backup that is paused from the beginning."""
    assert START == due(commit="", logSubcommand="log-pause")
    running = {"logSubCommandStatuses": {START: {"phase": "Running"}}}
    assert START == due("Running", "", running, logStop=True)
    assert STOP == due(commit="", logStop=True)
    assert START == due(commit="", logTruncateUntil="200")


@pytest.mark.rule("backup-3.8")
def test_a_finished_truncation_is_not_due_again() -> None:
    done = {"logSubCommandStatuses": {TRUNCATE: {"phase": "Complete", "logTruncatingUntil": "200"}}}
    assert START == due("Running", status=done, logTruncateUntil="200")
    assert START == due("Running", status={"logSuccessTruncateUntil": "200"}, logTruncateUntil="200")
    assert TRUNCATE == due("Running", status=done, logTruncateUntil="300")


@pytest.mark.parametrize(
    ("command", "status", "expected"),
    [
        (START, {"commitTs": "1"}, True),
        (START, {}, False),
        (STOP, {"phase": "Stopped"}, True),
        (PAUSE, {"phase": "Paused"}, True),
        (RESUME, {"phase": "Running"}, True),
        (RESUME, {"phase": "Paused"}, False),
        (TRUNCATE, {"commitTs": "1"}, False),
    ],
)
@pytest.mark.rule("backup-3.8")
def test_is_in_sync_once_the_commands_status_is_final(command: str, status: Json, *, expected: bool) -> None:
    assert expected is log_backups.is_in_sync(command, status)


def written(status: Json, command: str, kind: str, **fields: Any) -> Json:
    return log_backups.with_command(status, LogCondition(command, kind), NOW, fields)


@pytest.mark.rule("backup-3.8")
def test_the_start_command_sets_the_overall_phase_until_it_is_complete() -> None:
    status: Json = {}
    for kind in ("Scheduled", "Prepare", "Running"):
        status = written(status, START, kind)
        assert (kind, kind) == (status["phase"], status["logSubCommandStatuses"][START]["phase"])
    status = written(status, START, "Complete", timeStarted=AT, timeCompleted=AT, commitTs="100", backupPath="s3://x")
    assert ("Running", "Complete") == (status["phase"], status["logSubCommandStatuses"][START]["phase"])
    assert ["Scheduled", "Prepare", "Running"] == [each["type"] for each in status["conditions"]]
    assert {"timeStarted": AT, "commitTs": "100", "backupPath": "s3://x"}.items() <= status.items()
    assert "timeCompleted" not in status
    assert AT == status["logSubCommandStatuses"][START]["timeCompleted"]
    assert "backupPath" not in status["logSubCommandStatuses"][START]


@pytest.mark.parametrize(
    ("command", "phase", "kept"),
    [(STOP, "Stopped", {"timeCompleted": AT}), (PAUSE, "Paused", {}), (RESUME, "Running", {}), (TRUNCATE, "Old", {})],
)
@pytest.mark.rule("backup-3.8")
def test_other_commands_set_the_overall_phase_only_when_complete(command: str, phase: str, kept: Json) -> None:
    for kind in ("Scheduled", "Prepare", "Running", "Failed"):
        found = written({"phase": "Old"}, command, kind, timeStarted=AT)
        assert {"phase", "logSubCommandStatuses"} == found.keys()
        assert "Old" == found["phase"]
    found = written({"phase": "Old"}, command, "Complete", timeStarted=AT, timeCompleted=AT)
    assert phase == found["phase"]
    assert kept == {key: value for key, value in found.items() if key.startswith("time")}


@pytest.mark.rule("backup-3.8")
def test_a_truncation_records_its_progress() -> None:
    found = written({"phase": "Running"}, TRUNCATE, "Scheduled", logTruncatingUntil="200")
    assert "200" == found["logSubCommandStatuses"][TRUNCATE]["logTruncatingUntil"]
    assert {} == log_backups.entry(found, TRUNCATE, "300")
    found = written(found, TRUNCATE, "Complete", logSuccessTruncateUntil="200")
    assert ("Running", "200") == (found["phase"], found["logSuccessTruncateUntil"])
    assert "200" == log_backups.entry(found, TRUNCATE, "200")["logTruncatingUntil"]


@pytest.mark.rule("backup-3.8")
def test_pausing_and_resuming_can_be_repeated() -> None:
    status = written({"phase": "Running"}, PAUSE, "Complete")
    status = written(status, RESUME, "Complete")
    assert ("Repeatable", "Complete") == tuple(
        status["logSubCommandStatuses"][each]["phase"] for each in (PAUSE, RESUME)
    )
    assert "Running" == status["phase"]
