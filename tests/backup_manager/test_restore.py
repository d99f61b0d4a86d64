"""A restore, and the abort of one (backup.md 7.7)."""

from dataclasses import replace

import pytest

from backup_manager.outcomes import JobFailed, NotBuilt, Stopped, Unusable
from backup_manager.restore import RestoreOptions, run_restore
from kube.resources import RESTORES
from ports.stopping import Stop
from tests.backup_manager.storage.fakes import failing
from tests.backup_manager.worlds import NAME, NAMESPACE, World, printing, writing_meta

OPTIONS = RestoreOptions(NAMESPACE, NAME, tikv_version="v8.5.0")
ABORT = replace(OPTIONS, abort=True)


def failure(world: World, options: RestoreOptions = OPTIONS) -> tuple[str, str, str]:
    with pytest.raises(JobFailed):
        run_restore(options, world.outside())
    last = world.status(RESTORES)["conditions"][-1]
    return last["type"], last["reason"], last["message"]


@pytest.mark.rule("backup-7.7")
def test_a_restore_that_works(world: World) -> None:
    world.restore()
    writing_meta(world)()
    world.launcher.script = printing('[progress] [step="Full Restore"] [progress=10.00%]')
    run_restore(OPTIONS, world.outside())
    status = world.status(RESTORES)
    assert ["Running", "Complete"] == world.conditions(RESTORES)
    assert ("Complete", "449000000000") == (status["phase"], status["commitTs"])
    assert {"timeStarted", "timeCompleted", "timeTaken"} <= status.keys()
    assert ["Full Restore"] == [each["step"] for each in status["progresses"]]
    assert ["/var/lib/br-bin/br", "restore", "full"] == world.launcher.commands[0][:3]


@pytest.mark.rule("backup-7.7")
def test_does_not_fail_while_another_pod_may_follow(world: World) -> None:
    """v1.6 writes Failed, which releases the files, and then the Job's next pod reads them."""
    world.restore(backoffLimit=1)
    assert "RetryFailed" == failure(world)[0]
    writing_meta(world)()
    run_restore(OPTIONS, world.outside())
    assert "Complete" == world.status(RESTORES)["phase"]


@pytest.mark.rule("backup-7.7")
def test_keeps_a_known_start(world: World) -> None:
    world.restore(status={"phase": "Running", "timeStarted": "2025-12-31T23:59:00Z"})
    writing_meta(world)()
    run_restore(OPTIONS, world.outside())
    status = world.status(RESTORES)
    assert ("2025-12-31T23:59:00Z", "1m0s") == (status["timeStarted"], status["timeTaken"])


@pytest.mark.rule("backup-7.7")
def test_a_point_in_time(world: World) -> None:
    world.restore(restoreMode="pitr", logRestoreStartTs="5")
    writing_meta(world)()
    run_restore(replace(OPTIONS, mode="pitr", restored_ts="400"), world.outside())
    command = world.launcher.commands[0]
    assert ["restore", "point"] == command[1:3]
    assert ["--restored-ts=400", "--start-ts=5"] == command[-2:]
    assert "400" == world.status(RESTORES)["commitTs"]


@pytest.mark.rule("backup-7.7")
def test_the_latest_point_in_time(world: World) -> None:
    world.restore(restoreMode="pitr", logRestoreStartTs="5")
    writing_meta(world, end=700)()
    run_restore(replace(OPTIONS, mode="pitr"), world.outside())
    assert "700" == world.status(RESTORES)["commitTs"]


@pytest.mark.rule("backup-7.7")
def test_a_restore_that_fails(world: World) -> None:
    world.restore()
    writing_meta(world)()
    world.launcher.script = printing("[FATAL] no space", code=1)
    type_, reason, message = failure(world)
    assert ("Failed", "RestoreDataFromRemoteFailed") == (type_, reason)
    assert "[FATAL] no space" in message


@pytest.mark.rule("backup-7.7")
def test_without_a_backup_br_does_not_run(world: World) -> None:
    world.restore()
    type_, reason, message = failure(world)
    assert ("Failed", "RestoreDataFromRemoteFailed") == (type_, reason)
    assert "there is no backupmeta in s3://bucket/some/prefix (S3 (aws)): correct bucket and prefix" == message
    assert [] == world.launcher.commands


@pytest.mark.rule("backup-7.7")
def test_reports_a_silent_storage_before_br_runs(world: World) -> None:
    world.restore()
    world.storage.fail = failing("size")
    assert "cannot size s3://bucket/some/prefix" in failure(world)[2]
    assert [] == world.launcher.commands


@pytest.mark.rule("backup-7.7")
def test_a_restore_whose_backupmeta_is_deleted_meanwhile_fails(world: World) -> None:
    world.restore()
    writing_meta(world)()
    world.launcher.script = printing(then=world.storage.objects.clear)
    assert ("Failed", "GetCommitTsFailed") == failure(world)[:2]


def test_a_second_pod_of_a_complete_restore_does_not_restore_again(world: World) -> None:
    world.restore(status={"phase": "Complete", "conditions": [{"type": "Complete", "status": "True"}]})
    run_restore(OPTIONS, world.outside())
    assert [] == world.launcher.commands


def test_a_second_pod_retries_after_a_failed_one(world: World) -> None:
    world.restore(status={"phase": "Failed", "conditions": [{"type": "Failed", "status": "True"}]})
    writing_meta(world)()
    run_restore(OPTIONS, world.outside())
    assert "Complete" == world.status(RESTORES)["phase"]


@pytest.mark.rule("backup-7.6")
def test_sigterm_is_passed_on_and_is_no_failure(world: World) -> None:
    world.restore()
    writing_meta(world)()
    stop = Stop()
    world.launcher.script = printing(code=-15, then=stop.set)
    with pytest.raises(Stopped):
        run_restore(OPTIONS, world.outside(stop))
    assert "Running" == world.status(RESTORES)["phase"]


@pytest.mark.rule("backup-7.7")
def test_abort_undoes_a_failed_restore(world: World) -> None:
    world.restore(status={"phase": "PruneScheduled"})
    run_restore(ABORT, world.outside())
    assert ["abort", "restore", "full"] == world.launcher.commands[0][1:4]
    conditions = world.status(RESTORES)["conditions"]
    told = [(each["type"], each["reason"]) for each in conditions]
    assert [("PruneRunning", "PruneJobStarted"), ("PruneComplete", "PruneJobComplete")] == told
    assert "PruneComplete" == world.status(RESTORES)["phase"]


@pytest.mark.rule("backup-7.7")
def test_an_abort_that_fails_or_is_unsupported_fails(world: World) -> None:
    world.restore()
    world.launcher.script = printing("[ERROR] x", code=2)
    assert ("PruneFailed", "BRAbortFailed") == failure(world, ABORT)[:2]
    for code in (0, 1):
        world.launcher.script = printing("Usage: br restore", code=code)
        assert ("PruneFailed", "CommandNotFound") == failure(world, ABORT)[:2]


@pytest.mark.rule("backup-7.7")
def test_abort_without_a_storage(world: World) -> None:
    world.restore(s3=None)
    assert ("PruneFailed", "ConstructArgsFailed") == failure(world, ABORT)[:2]


def test_rejects_unsupported_restores(world: World) -> None:
    with pytest.raises(NotBuilt, match="restore --mode=volume-snapshot"):
        run_restore(replace(OPTIONS, mode="volume-snapshot"), world.outside())
    world.restore(br=None)
    with pytest.raises(Unusable, match=r"spec\.br is missing"):
        run_restore(OPTIONS, world.outside())


REPLICATION = ["--pitr-concurrency=1024", "--metadata-download-batch-size=512", "--retain-latest-mvcc-version"]


@pytest.mark.rule("RPL-13", "RPL-14")
def test_the_first_step_of_a_replication_restore_writes_no_condition(world: World) -> None:
    before = {"phase": "SnapshotRestore", "replicationStep": "snapshot-restore"}
    world.restore(status=before, restoreMode="pitr", logRestoreStartTs="5")
    writing_meta(world)()
    run_restore(replace(OPTIONS, mode="pitr", restored_ts="400", phase="1"), world.outside())
    status = world.status(RESTORES)
    assert (before, []) == ({key: status[key] for key in before}, status.get("conditions", []))
    command = world.launcher.commands[0]
    assert ["restore", "point"] == command[1:3]
    assert ["--restored-ts=400", "--start-ts=5", "--restore-phase=1", *REPLICATION] == command[-6:]


@pytest.mark.rule("RPL-13")
def test_the_first_step_leaves_its_failure_to_the_job(world: World) -> None:
    world.restore(status={"phase": "SnapshotRestore"}, restoreMode="pitr", logRestoreStartTs="5")
    with pytest.raises(JobFailed, match="there is no backupmeta"):
        run_restore(replace(OPTIONS, mode="pitr", phase="1"), world.outside())
    assert "SnapshotRestore" == world.status(RESTORES)["phase"]


@pytest.mark.rule("RPL-13", "RPL-14")
def test_the_second_step_reports_as_every_restore(world: World) -> None:
    world.restore(status={"phase": "LogRestore"}, restoreMode="pitr", logRestoreStartTs="5")
    writing_meta(world)()
    run_restore(replace(OPTIONS, mode="pitr", restored_ts="400", phase="2"), world.outside())
    assert (["Running", "Complete"], "400") == (world.conditions(RESTORES), world.status(RESTORES)["commitTs"])
    assert ["--restore-phase=2", *REPLICATION] == world.launcher.commands[0][-4:]
