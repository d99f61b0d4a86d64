"""Sub-commands of a log backup in their pods (backup.md 7.5)."""

from dataclasses import replace
from typing import Any

import pytest

from backup_manager.log_backup import LogOptions, run_log_backup
from backup_manager.outcomes import JobFailed, Stopped, Unusable
from kube.objects import Json
from kube.resources import BACKUPS
from ports.stopping import Stop
from tests.backup_manager.worlds import NAME, NAMESPACE, World, printing, writing_meta

START = LogOptions(NAMESPACE, NAME)
TRUNCATE = replace(START, command="log-truncate", truncate_until="500")
STARTED = '[2026/01/01 00:00:00.000 +00:00] ["BR operation started"] [operation_id=a] [command="log truncate"]'


def log(world: World, phase: str = "Scheduled", **status: Any) -> None:
    """Create a log backup with this status."""
    world.backup(status={"phase": phase, **status}, backupMode="log")


def running(world: World) -> None:
    log(world, "Running", commitTs="100", timeStarted="2025-12-31T23:00:00Z")


def entry(world: World, command: str) -> Json:
    found: Json = world.status(BACKUPS)["logSubCommandStatuses"][command]
    return found


def kinds(world: World, command: str) -> list[str]:
    return [each["type"] for each in entry(world, command)["conditions"]]


@pytest.mark.rule("backup-7.5")
def test_the_log_begins(world: World) -> None:
    log(world)
    world.launcher.script = printing(then=writing_meta(world, start=100, end=0))
    run_log_backup(START, world.outside())
    status = world.status(BACKUPS)
    assert ("Running", "100", "s3://bucket/some/prefix") == tuple(
        status[key] for key in ("phase", "commitTs", "backupPath")
    )
    assert ["Prepare", "Running", "Complete"] == kinds(world, "log-start")
    assert {"timeStarted", "timeCompleted"} <= entry(world, "log-start").keys()
    assert "timeCompleted" not in status
    assert ["log", "start", f"--task-name={NAME}"] == world.launcher.commands[0][1:4]


@pytest.mark.parametrize(
    ("command", "phase"), [("log-pause", "Paused"), ("log-resume", "Running"), ("log-stop", "Stopped")]
)
@pytest.mark.rule("backup-7.5")
def test_the_other_sub_commands_report_their_outcome(world: World, command: str, phase: str) -> None:
    running(world)
    run_log_backup(replace(START, command=command), world.outside())
    status = world.status(BACKUPS)
    assert (phase, ["Prepare", "Running", "Complete"]) == (status["phase"], kinds(world, command))
    assert ("timeTaken" in status) is (command == "log-stop")


@pytest.mark.rule("backup-7.5")
def test_truncation_reports_its_end_and_operation(world: World) -> None:
    running(world)
    world.launcher.script = printing(STARTED)
    run_log_backup(TRUNCATE, world.outside())
    status = world.status(BACKUPS)
    assert ("Running", "500") == (status["phase"], status["logSuccessTruncateUntil"])
    assert ["log truncate"] == [each["command"] for each in status["brOperations"]]


@pytest.mark.parametrize(
    ("command", "reason", "phase"),
    [
        ("log-start", "StartLogBackupFailed", "Failed"),
        ("log-stop", "StopLogBackupFailed", "Running"),
        ("log-pause", "PauseLogBackupFailed", "Running"),
        ("log-resume", "ResumeLogBackuFailed", "Running"),
        ("log-truncate", "TruncateLogBackuFailed", "Running"),
    ],
)
@pytest.mark.rule("backup-7.5")
def test_a_failure_has_the_reasons_of_v1_6(world: World, command: str, reason: str, phase: str) -> None:
    if command == "log-start":
        log(world)
    else:
        running(world)
    world.launcher.script = printing("[ERROR] no such task", code=1)
    with pytest.raises(JobFailed):
        run_log_backup(replace(TRUNCATE, command=command), world.outside())
    said = entry(world, command)["conditions"][-1]
    assert ("Failed", reason, True) == (said["type"], said["reason"], "no such task" in said["message"])
    assert phase == world.status(BACKUPS)["phase"]


@pytest.mark.rule("backup-7.5")
def test_a_log_without_metadata_has_failed(world: World) -> None:
    log(world)
    with pytest.raises(JobFailed, match="GetLogBackupMetadataFailed"):
        run_log_backup(START, world.outside())


@pytest.mark.rule("backup-7.5")
def test_a_log_does_not_begin_among_foreign_files(world: World) -> None:
    log(world)
    world.storage.objects["v1/backupmeta/1.meta"] = b"x"
    with pytest.raises(JobFailed, match="give each Backup a prefix of its own"):
        run_log_backup(START, world.outside())
    assert ([], "Failed") == (world.launcher.commands, world.status(BACKUPS)["phase"])


@pytest.mark.rule("backup-7.5")
def test_does_not_start_a_running_log_again(world: World) -> None:
    running(world)
    run_log_backup(START, world.outside())
    assert [] == world.launcher.commands


def test_the_next_pod_completes_one_killed_after_br(world: World) -> None:
    log(world, "Running", backupPath="s3://bucket/some/prefix")
    writing_meta(world, start=100, end=0)()
    world.launcher.script = printing("[ERROR] there is a task already", code=1)
    run_log_backup(START, world.outside())
    assert ("Running", "100") == (world.status(BACKUPS)["phase"], world.status(BACKUPS)["commitTs"])


def test_a_log_started_elsewhere_takes_nothing_over_at_a_changed_place(world: World) -> None:
    log(world, "Running", backupPath="s3://bucket/before")
    writing_meta(world, start=100, end=0)()
    with pytest.raises(JobFailed, match="give each Backup a prefix of its own"):
        run_log_backup(START, world.outside())
    assert ([], "s3://bucket/before") == (world.launcher.commands, world.status(BACKUPS)["backupPath"])


@pytest.mark.rule("backup-7.5")
def test_truncates_only_the_log_itself(world: World) -> None:
    log(world, "Running", commitTs="100", backupPath="s3://bucket/before")
    with pytest.raises(JobFailed):
        run_log_backup(TRUNCATE, world.outside())
    said = entry(world, "log-truncate")["conditions"][-1]
    message = (
        "the log is in s3://bucket/before, and the spec names s3://bucket/some/prefix: nothing is truncated there; "
        "name the place of the log in the spec again"
    )
    assert ("Failed", message, []) == (said["type"], said["message"], world.launcher.commands)


@pytest.mark.rule("backup-7.6")
def test_sigterm_is_no_failure(world: World) -> None:
    running(world)
    stop = Stop()
    world.launcher.script = printing(code=-15, then=stop.set)
    with pytest.raises(Stopped):
        run_log_backup(TRUNCATE, world.outside(stop))
    assert ["Prepare", "Running"] == kinds(world, "log-truncate")


@pytest.mark.rule("backup-3.8")
def test_conditions_of_a_deleted_backup_are_about_the_whole(world: World) -> None:
    running(world)
    tree = world.read(BACKUPS)
    tree["metadata"]["finalizers"] = ["tidb.pingcap.com/backup-protection"]
    world.client.replace(BACKUPS, NAME, NAMESPACE, tree)
    world.client.delete(BACKUPS, NAME, NAMESPACE)
    run_log_backup(replace(START, command="log-stop"), world.outside())
    status = world.status(BACKUPS)
    assert ("Complete", "logSubCommandStatuses" in status) == (status["phase"], False)
    assert {"log-stop"} == {each["command"] for each in status["conditions"]}


def test_rejects_an_unusable_backup(world: World) -> None:
    with pytest.raises(Unusable, match=r"--subcommand=log-jump: must be one of log-start"):
        run_log_backup(replace(START, command="log-jump"), world.outside())
    world.backup(backupMode="log", br=None)
    with pytest.raises(Unusable, match=r"spec\.br is missing"):
        run_log_backup(START, world.outside())
