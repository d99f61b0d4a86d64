"""A log backup through its life: one Job for each sub-command, and what the cluster itself says (backup.md 3.8)."""

import pytest

from kube.resources import BACKUPS, COMPACT_BACKUPS, JOBS, RESTORES, TIDB_CLUSTERS
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup.log_backups_world import PATH, TSO, LogBackupsWorld


@pytest.mark.rule("backup-3.8")
def test_a_job_starts_a_log_backup(logs: LogBackupsWorld) -> None:
    assert ["backup-demo-log-start"] == logs.jobs()
    assert ("Scheduled", "Scheduled") == (logs.phase(), logs.entry("log-start")["phase"])
    assert ["--mode=log", "--subcommand=log-start"] == logs.arguments("log-start")[-2:]
    assert ["tidb.pingcap.com/backup-protection"] == logs.backup()["metadata"]["finalizers"]
    logs.begin()
    logs.run(1)
    assert ("Running", "Complete") == (logs.phase(), logs.entry("log-start")["phase"])
    assert (str(TSO), PATH) == (logs.status()["commitTs"], logs.status()["backupPath"])
    assert ["backup-demo-log-start"] == logs.jobs()


@pytest.mark.parametrize(
    ("name", "owned", "whose"),
    [
        ("other", True, "of Backup lab/other; delete or stop that Backup"),
        *(
            (name, False, f"which no Backup here owns: its Backup is gone, or it was begun by hand; stop it with {way}")
            for name, argument in (("other", "other"), ("next", "next"), ("a; b", "'a; b'"))
            for way in [f"`br log stop --task-name={argument}`"]
        ),
    ],
)
def test_a_log_backup_waits_for_another_task_says_whose_it_is_and_begins_when_it_has_ended(
    logs: LogBackupsWorld, name: str, owned: bool, whose: str
) -> None:
    """BR runs one task in a cluster at a time, and fails with "already exists"."""
    if owned:
        body = tree("Backup", by_br(backupMode="log", s3=S3 | {"prefix": "other"}), name=name, namespace=NAMESPACE)
        logs.admin.create(BACKUPS, body, NAMESPACE)
        logs.admin.patch(BACKUPS, name, NAMESPACE, {"status": {"phase": "Running", "commitTs": "1"}})
    logs.pd.task(name).begin(1)
    logs.add("next", backupMode="log", s3=S3 | {"prefix": "next"})
    logs.run(15)
    message = f"waiting for TidbCluster lab/basic to be free: it runs the log backup {name}, {whose}"
    assert ("True", "OtherLogBackup", message) == logs.condition("Waiting", "next")
    assert "backup-next-log-start" not in logs.jobs()

    logs.pd.task(name).stop()
    logs.run(60)
    assert "backup-next-log-start" in logs.jobs()
    assert "False" == logs.condition("Waiting", "next")[0]


def test_a_silent_pd_does_not_delay_a_log_backup(logs: LogBackupsWorld) -> None:
    logs.pd.answers = False
    logs.add("next", backupMode="log", s3=S3 | {"prefix": "next"})
    assert "backup-next-log-start" in logs.jobs()


def test_a_start_that_was_killed_is_not_taken_for_the_task_of_another(logs: LogBackupsWorld) -> None:
    logs.do("log-start", "Prepare", "Running")
    logs.task.begin(1)
    logs.end("backup-demo-log-start")
    logs.run(310)
    assert ("False", ["backup-demo-log-start"]) == (logs.condition("Waiting")[0], logs.jobs())


@pytest.mark.rule("backup-3.8")
def test_pause_and_resume_as_often_as_one_likes(logs: LogBackupsWorld) -> None:
    logs.begin()
    for _ in range(2):
        logs.change(logSubcommand="log-pause")
        logs.run(5)
        logs.carry_out("log-pause")
        assert "Paused" == logs.phase()
        logs.change(logSubcommand="log-start")
        logs.run(5)
        logs.carry_out("log-resume")
        assert "Running" == logs.phase()
    assert ("Repeatable", "Complete") == tuple(logs.entry(each)["phase"] for each in ("log-pause", "log-resume"))


@pytest.mark.rule("backup-3.8")
def test_a_stopped_log_backup_stays_stopped(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logStop=True)
    logs.carry_out("log-stop")
    assert "Stopped" == logs.phase()
    logs.change(logStop=False, logSubcommand="log-start")
    logs.run(120)
    assert ("Stopped", 2) == (logs.phase(), len(logs.jobs()))


@pytest.mark.rule("backup-3.8")
def test_truncation_runs_beside_the_log_backup(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logTruncateUntil=str(TSO + 5))
    assert f"--truncate-until={TSO + 5}" == logs.arguments("log-truncate")[-1]
    assert (str(TSO + 5), "Running") == (logs.entry("log-truncate")["logTruncatingUntil"], logs.phase())
    logs.carry_out("log-truncate", logSuccessTruncateUntil=str(TSO + 5))
    assert (str(TSO + 5), "Running") == (logs.status()["logSuccessTruncateUntil"], logs.phase())
    logs.change(logTruncateUntil=str(TSO + 9))
    logs.run(5)
    assert f"--truncate-until={TSO + 9}" == logs.arguments("log-truncate")[-1]


@pytest.mark.rule("backup-3.8")
def test_a_second_truncation_waits_for_the_first(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logTruncateUntil=str(TSO + 5))
    logs.change(logTruncateUntil=str(TSO + 9))
    logs.run(120)
    assert f"--truncate-until={TSO + 5}" == logs.arguments("log-truncate")[-1]
    logs.finish("log-truncate")
    logs.run(5)
    assert f"--truncate-until={TSO + 9}" == logs.arguments("log-truncate")[-1]


@pytest.mark.rule("backup-3.9")
def test_a_log_that_is_restored_from_is_not_truncated(logs: LogBackupsWorld) -> None:
    """v1.6 removes files that are being read."""
    logs.begin()
    spec = by_br(s3=S3 | {"prefix": "log"}, restoreMode="pitr", logRestoreStartTs="7")
    logs.admin.create(RESTORES, tree("Restore", spec, name="back", namespace=NAMESPACE), NAMESPACE)
    logs.change(logTruncateUntil=str(TSO + 5))
    message = "the log is not truncated while Restore lab/back reads it; it is when that one has ended"
    assert ("FilesInUse", message) == logs.said("log-truncate", "RetryFailed")
    assert ("Running", ["backup-demo-log-start"]) == (logs.phase(), logs.jobs())
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    logs.admin.patch(RESTORES, "back", NAMESPACE, {"status": done})
    logs.run(40)
    assert "backup-demo-log-truncate" in logs.jobs()


@pytest.mark.rule("backup-3.9")
def test_a_log_that_is_compacted_is_not_truncated(logs: LogBackupsWorld) -> None:
    """v1.6 removes what tikv-ctl reads. A compaction of later changes does not block a truncation."""
    logs.begin()
    for name, start in (("early", TSO + 1), ("late", TSO + 5)):
        spec = by_br(s3=S3 | {"prefix": "/log/"}, startTs=str(start), endTs=str(TSO + 9))
        logs.admin.create(COMPACT_BACKUPS, tree("CompactBackup", spec, name=name, namespace=NAMESPACE), NAMESPACE)
    logs.change(logTruncateUntil=str(TSO + 5))
    assert "CompactBackup lab/early reads it" in logs.said("log-truncate", "RetryFailed")[1]
    logs.run(35)
    assert "backup-demo-log-truncate" not in logs.jobs()
    logs.admin.patch(COMPACT_BACKUPS, "early", NAMESPACE, {"status": {"state": "Complete"}})
    logs.run(35)
    assert "backup-demo-log-truncate" in logs.jobs()


@pytest.mark.rule("backup-3.8")
def test_a_truncation_before_the_log_begins_is_already_done(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logTruncateUntil=str(TSO))
    assert ("Complete", str(TSO)) == tuple(logs.entry("log-truncate")[key] for key in ("phase", "logTruncatingUntil"))
    assert ["backup-demo-log-start"] == logs.jobs()


@pytest.mark.rule("backup-3.8")
def test_a_pause_waits_for_the_start() -> None:
    """v1.6 waits forever for the start of a log backup that is paused from the beginning."""
    world = LogBackupsWorld(logSubcommand="log-pause")
    try:
        assert ["backup-demo-log-start"] == world.jobs()
        world.begin()
        assert ["backup-demo-log-pause", "backup-demo-log-start"] == sorted(world.jobs())
    finally:
        world.stop()


@pytest.mark.rule("backup-3.8")
def test_progress_is_written_each_minute_and_nothing_else_is_done(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.run(70)
    asked, version = logs.pd.requests, logs.backup()["metadata"]["resourceVersion"]
    logs.run(600)
    assert version == logs.backup()["metadata"]["resourceVersion"], "nothing has changed"
    assert asked + 3 * 9 <= logs.pd.requests <= asked + 3 * 11
    logs.task.advance(TSO + 77)
    logs.run(65)
    assert str(TSO + 77) == logs.status()["logCheckpointTs"]
    assert "timeSynced" in logs.status()


@pytest.mark.rule("backup-3.8")
def test_a_cluster_that_does_not_answer_changes_nothing(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.run(70)
    before, logs.pd.answers = logs.status(), False
    logs.run(300)
    assert before == logs.status()


@pytest.mark.rule("backup-3.8")
def test_a_lost_task_is_reported_once_a_second_check_confirms_it(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.run(70)
    logs.task.stop()
    for _ in range(140):
        logs.run(1)
        if logs.phase() != "Running":
            break
    _, reason, message = logs.condition("Failed")
    assert ("LogBackupTaskNotFound", True) == (reason, "create another Backup" in message)
    assert ["backup-demo-log-start"] == logs.jobs()
    logs.task.begin(TSO)
    logs.run(70)
    assert "Running" == logs.phase(), "v1.6 never looks again"


@pytest.mark.rule("backup-3.8")
def test_a_condition_quotes_two_hundred_printable_characters_of_an_error(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.task.fail("\x1b[2J" + "x" * 10_000)
    logs.run(70)
    message = logs.condition("RetryFailed")[2]
    assert message.isprintable()
    assert len(message) < 400


@pytest.mark.rule("backup-3.8")
def test_an_error_in_the_cluster_is_reported_and_cleared(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.task.fail("no space", store=4)
    logs.run(70)
    _, reason, message = logs.condition("RetryFailed")
    assert ("LogBackupErrorPaused", "RetryFailed") == (reason, logs.phase())
    assert "Paused by error(store 4): no space" in message
    logs.task.resume()
    logs.run(70)
    assert "Running" == logs.phase()


@pytest.mark.rule("backup-3.8")
def test_a_log_backup_paused_by_hand_continues_as_the_spec_says(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.run(70)
    logs.task.pause()
    logs.run(90)
    assert ("LogBackupKernelSync", "Synced with kernel state: paused") == logs.said("log-pause", "Complete")
    assert "backup-demo-log-resume" in logs.jobs()
    logs.carry_out("log-resume")
    assert "Running" == logs.phase()


@pytest.mark.rule("backup-3.8")
def test_one_check_proves_nothing(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.run(70)
    logs.task.pause()
    asked = logs.pd.requests
    while logs.pd.requests == asked:
        logs.run(1)
    logs.task.resume()
    logs.run(120)
    assert "Running" == logs.phase()
    assert "log-pause" not in logs.status()["logSubCommandStatuses"]


@pytest.mark.rule("backup-3.8")
def test_a_log_backup_resumed_by_hand_is_paused_again(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logSubcommand="log-pause")
    logs.carry_out("log-pause")
    logs.run(70)
    logs.task.resume()
    logs.run(90)
    assert ("LogBackupKernelSync", "Synced with kernel state: running") == logs.said("log-resume", "Complete")
    assert "Scheduled" == logs.entry("log-pause")["phase"]


@pytest.mark.rule("backup-3.8")
def test_a_crashed_job_is_reported_and_recreated(logs: LogBackupsWorld) -> None:
    """v1.6 waits for it forever."""
    first = logs.job("backup-demo-log-start")["metadata"]["uid"]
    logs.end("backup-demo-log-start")
    _, reason, message = logs.condition("Failed")
    assert ("AlreadyFailed", True) == (reason, "at once when you delete it" in message)
    logs.run(280)
    assert (first, "Failed") == (logs.job("backup-demo-log-start")["metadata"]["uid"], logs.phase())
    logs.run(40)
    assert "Scheduled" == logs.phase()
    logs.begin()
    assert "Running" == logs.phase()


@pytest.mark.rule("backup-3.8")
def test_a_failure_reported_by_its_pod_is_retried_when_the_job_is_deleted(logs: LogBackupsWorld) -> None:
    logs.do("log-start", "Failed")
    logs.end("backup-demo-log-start")
    logs.run(900)
    assert "Failed" == logs.phase()
    logs.admin.delete(JOBS, "backup-demo-log-start", NAMESPACE, propagation="Background")
    logs.run(10)
    assert "Scheduled" == logs.phase()


@pytest.mark.rule("backup-3.8")
def test_reports_why_the_pod_of_a_sub_command_cannot_start_until_it_starts(logs: LogBackupsWorld) -> None:
    logs.run(60)
    told = ("PodCannotStart", logs.kept_from_starting("backup-demo-log-start"))
    assert (told, ("True", *told)) == (logs.said("log-start", "Scheduled"), logs.condition("Scheduled"))
    logs.begin()
    logs.change(logStop=True)
    logs.run(60)
    told = ("PodCannotStart", logs.kept_from_starting("backup-demo-log-stop"))
    assert (told, "Running") == (logs.said("log-stop", "Scheduled"), logs.phase())
    logs.do("log-stop", "Prepare")
    assert (("", ""), "Prepare") == (logs.said("log-stop", "Scheduled"), logs.entry("log-stop")["phase"])


@pytest.mark.rule("backup-3.8")
def test_a_deleted_job_is_recreated(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logStop=True)
    first = logs.job("backup-demo-log-stop")["metadata"]["uid"]
    logs.admin.delete(JOBS, "backup-demo-log-stop", NAMESPACE, propagation="Background")
    logs.run(10)
    assert first != logs.job("backup-demo-log-stop")["metadata"]["uid"]


@pytest.mark.rule("backup-3.8")
def test_a_job_that_ended_without_a_word_has_failed(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logStop=True)
    logs.finish("log-stop")
    assert "Scheduled" == logs.entry("log-stop")["phase"]
    logs.run(65)
    assert ("AlreadyFailed", "Running") == (logs.said("log-stop", "Failed")[0], logs.phase())


@pytest.mark.rule("backup-3.8")
def test_a_failed_job_may_have_succeeded_all_the_same(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logStop=True)
    logs.do("log-stop", "Failed")
    logs.task.stop()
    logs.run(90)
    assert ("Stopped", "LogBackupKernelSync") == (logs.phase(), logs.said("log-stop", "Complete")[0])


@pytest.mark.rule("backup-3.8")
def test_reports_a_missing_cluster_and_continues_when_it_returns(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    logs.run(120)
    assert ("RetryFailed", True) == (logs.phase(), "failed to fetch" in logs.condition("RetryFailed")[1])
    logs.add_cluster()
    logs.run(120)
    assert "Running" == logs.phase()


@pytest.mark.rule("backup-3.6")
def test_a_wrong_edit_of_a_running_log_backup_is_reported_and_reverted(logs: LogBackupsWorld) -> None:
    logs.begin()
    logs.change(logTruncateUntil="yesterday")
    assert ("InvalidSpec", True) == (
        logs.said("log-truncate", "Invalid")[0],
        "spec.logTruncateUntil" in logs.said("log-truncate", "Invalid")[1],
    )
    assert "Running" == logs.phase()
    logs.change(logTruncateUntil=str(TSO + 5))
    assert "Scheduled" == logs.entry("log-truncate")["phase"]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("command", ["log-pause", "log-stop"])
def test_a_new_process_continues_after_a_crash_at_any_point(logs: LogBackupsWorld, at: int, command: str) -> None:
    logs.begin()
    logs.restart()
    logs.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"logSubcommand": command}})
    for _ in range(at):
        logs.operator.step()
        logs.world.settle()
    logs.restart()
    logs.run(20)
    assert ["backup-demo-log-start", f"backup-demo-{command}"] == sorted(
        logs.jobs(), key=lambda each: "start" not in each
    )
    logs.carry_out(command)
    assert {"log-pause": "Paused", "log-stop": "Stopped"}[command] == logs.phase()
