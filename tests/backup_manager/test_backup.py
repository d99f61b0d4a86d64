"""A snapshot, from Scheduled to Complete or Failed (backup.md 7.4), and its continuation by a second pod."""

from dataclasses import replace

import pytest

from backup_manager import br
from backup_manager.backup import BackupOptions, run_backup
from backup_manager.child_process import CannotStart, OnLine
from backup_manager.outcomes import JobFailed, NotBuilt, Stopped, Unusable
from backup_manager.records import RecordGone
from backup_manager.storage.errors import AccessDenied, StorageError
from kube.resources import BACKUPS
from ports.stopping import Stop
from tests.backup_manager.storage.fakes import WHERE, failing
from tests.backup_manager.storage.servers import CANARY
from tests.backup_manager.worlds import NAME, NAMESPACE, World, meta_bytes, printing, writing_meta

OPTIONS = BackupOptions(NAMESPACE, NAME, tikv_version="v8.5.0")
BEGUN = {"phase": "Running", "backupPath": "s3://bucket/some/prefix"}


def failure(world: World, options: BackupOptions = OPTIONS) -> tuple[str, str]:
    """The reason and message of the condition Failed at its end."""
    with pytest.raises(JobFailed):
        run_backup(options, world.outside())
    status = world.status(BACKUPS)
    assert "Failed" == status["phase"]
    failed = next(each for each in status["conditions"] if each["type"] == "Failed")
    return failed["reason"], failed["message"]


@pytest.mark.rule("backup-7.4")
def test_a_backup_that_works(world: World) -> None:
    world.backup()
    world.launcher.script = printing(
        '[progress] [step="Full Backup"] [progress=50.00%]',
        '[progress] [step="Full Backup"] [progress=100.00%]',
        "[BR operation started] [operation_id=1] [command=backup]",
        then=writing_meta(world),
    )
    run_backup(OPTIONS, world.outside())
    status = world.status(BACKUPS)
    assert ["Prepare", "Running", "Complete", "Verified"] == world.conditions(BACKUPS)
    assert "Complete" == status["phase"]
    assert "s3://bucket/some/prefix" == status["backupPath"]
    assert ("449000000000", 8_200_000, "8.2 MB") == (
        status["commitTs"],
        status["backupSize"],
        status["backupSizeReadable"],
    )
    assert {"timeStarted", "timeCompleted", "timeTaken"} <= status.keys()
    assert [("Full Backup", 100)] == [(each["step"], each["progress"]) for each in status["progresses"]]
    assert ["1"] == [each["operationID"] for each in status["brOperations"]]
    [command] = world.launcher.commands
    assert ["/var/lib/br-bin/br", "backup", "full", "--pd=basic-pd.db:2379"] == command[:4]
    assert world.environ == world.launcher.environs[0]
    assert {"sst", "backupmeta"} == world.storage.objects.keys()


@pytest.mark.rule("backup-7.4")
def test_keeps_concurrent_writes_of_the_user(world: World) -> None:
    world.backup()

    def edit() -> None:
        world.client.patch(BACKUPS, NAME, NAMESPACE, {"spec": {"cleanPolicy": "Delete"}})
        writing_meta(world)()

    world.launcher.script = printing(then=edit)
    run_backup(OPTIONS, world.outside())
    assert "Delete" == world.read(BACKUPS)["spec"]["cleanPolicy"]


@pytest.mark.rule("backup-7.4")
def test_the_message_is_the_error_of_br_without_credentials(world: World) -> None:
    world.backup()
    world.launcher.script = printing("[INFO] fine", f"[ERROR] key {CANARY} refused", code=1)
    reason, message = failure(world)
    assert "BackupDataToRemoteFailed" == reason
    assert "BR ended with exit code 1: [ERROR] key [redacted] refused" == message


@pytest.mark.rule("backup-7.4")
def test_names_a_missing_br(world: World) -> None:
    world.backup()

    def missing(_on_line: OnLine, _stop: Stop) -> int:
        raise CannotStart("cannot start /var/lib/br-bin/br: No such file or directory")

    world.launcher.script = missing
    assert "cannot start /var/lib/br-bin/br" in failure(world)[1]


@pytest.mark.rule("backup-7.4")
def test_without_backupmeta_nothing_is_complete(world: World) -> None:
    world.backup()
    reason, message = failure(world)
    assert "GetBackupMetadataFailed" == reason
    assert "cannot" in message or "backupmeta" in message
    assert "Complete" not in world.conditions(BACKUPS)


@pytest.mark.rule("backup-7.4")
def test_a_backupmeta_that_saved_nothing_is_not_complete(world: World) -> None:
    world.backup()
    world.launcher.script = printing(then=writing_meta(world, end=0))
    assert "has no end version" in failure(world)[1]


@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.rule("backup-7.4")
def test_tries_to_read_backupmeta_six_times(world: World, times: int) -> None:
    world.backup()
    world.storage.fail = failing("read", *range(1, times + 1))
    world.launcher.script = printing(then=writing_meta(world))
    run_backup(OPTIONS, world.outside())
    # once more to verify the files
    assert times + 2 == world.storage.calls.count("read")


@pytest.mark.rule("backup-7.4")
def test_does_not_try_a_seventh_time(world: World) -> None:
    world.backup()
    world.storage.fail = failing("read")
    world.launcher.script = printing(then=writing_meta(world))
    assert "GetBackupMetadataFailed" == failure(world)[0]
    assert 6 == world.storage.calls.count("read")


def test_refuses_a_used_place_before_br_runs(world: World) -> None:
    world.backup()
    world.storage.objects["other/backupmeta"] = meta_bytes()
    reason, message = failure(world)
    assert "BackupDataToRemoteFailed" == reason
    assert "it is not empty (other/backupmeta is there); give each Backup a prefix of its own" in message
    assert [] == world.launcher.commands
    assert "backupPath" not in world.status(BACKUPS)


def test_reports_a_read_only_place_before_br_runs(world: World) -> None:
    world.backup()
    world.storage.fail = failing("write", error=AccessDenied("write to", WHERE, "allow s3:PutObject there"))
    assert "allow s3:PutObject there" in failure(world)[1]
    assert [] == world.launcher.commands


@pytest.mark.rule("backup-7.4")
def test_no_storage_has_its_reason(world: World) -> None:
    world.backup(s3=None)
    assert "GetBackupRemotePathFailed" == failure(world)[0]


def test_a_second_pod_of_a_complete_backup_does_nothing(world: World) -> None:
    complete = [{"type": each, "status": "True"} for each in ("Complete", "Verified")]
    world.backup(status=BEGUN | {"phase": "Complete", "conditions": complete})
    before = world.read(BACKUPS)
    run_backup(OPTIONS, world.outside())
    assert before == world.read(BACKUPS)
    assert [] == world.launcher.commands


def test_a_second_pod_finds_the_backup_that_br_has_finished(world: World) -> None:
    prepared = {"type": "Prepare", "status": "True", "lastTransitionTime": "2025-12-31T23:00:00Z"}
    world.backup(status=BEGUN | {"conditions": [prepared]})
    writing_meta(world)()
    run_backup(OPTIONS, world.outside())
    status = world.status(BACKUPS)
    assert "Complete" == status["phase"]
    assert ("449000000000", "2025-12-31T23:00:00Z", "1h0m0s") == (
        status["commitTs"],
        status["timeStarted"],
        status["timeTaken"],
    )
    assert [] == world.launcher.commands


@pytest.mark.rule("backup-7.4")
def test_a_second_pod_lets_br_continue_from_its_checkpoint(world: World) -> None:
    world.backup(status=BEGUN)
    world.storage.objects["checkpoints/1"] = b"x"
    world.launcher.script = printing(then=writing_meta(world))
    run_backup(OPTIONS, world.outside())
    assert ["Restart", "Prepare", "Running", "Complete", "Verified"] == world.conditions(BACKUPS)
    assert {"checkpoints/1", "sst", "backupmeta"} == world.storage.objects.keys()


@pytest.mark.parametrize("version", ["v6.5.0", "v5.4.3", "nightly", "4.0"])
@pytest.mark.rule("backup-7.4")
def test_an_older_br_starts_over_with_an_empty_prefix(world: World, version: str) -> None:
    world.backup(status=BEGUN)
    world.storage.objects["1.sst"] = b"x"
    world.launcher.script = printing(then=writing_meta(world))
    run_backup(replace(OPTIONS, tikv_version=version), world.outside())
    assert {"sst", "backupmeta"} == world.storage.objects.keys()


@pytest.mark.parametrize("version", ["v6.1.0", "v8.5.0"])
def test_a_second_pod_takes_nothing_over_at_a_changed_place(world: World, version: str) -> None:
    world.backup(status=BEGUN | {"backupPath": "s3://bucket/before"})
    writing_meta(world)()
    there = dict(world.storage.objects)
    assert "it is not empty" in failure(world, replace(OPTIONS, tikv_version=version))[1]
    assert there == {key: world.storage.objects[key] for key in there}
    assert "s3://bucket/before" == world.status(BACKUPS)["backupPath"]


def test_a_second_pod_starts_over_at_another_free_place(world: World) -> None:
    world.backup(status=BEGUN | {"backupPath": "s3://bucket/before"})
    world.launcher.script = printing(then=writing_meta(world))
    run_backup(OPTIONS, world.outside())
    status = world.status(BACKUPS)
    assert ("Complete", "s3://bucket/some/prefix") == (status["phase"], status["backupPath"])


def test_a_pod_before_the_phase_takes_over_no_foreign_backup(world: World) -> None:
    world.backup(status={"phase": ""})
    writing_meta(world)()
    assert "it is not empty" in failure(world)[1]


def test_a_signal_leaves_no_failure_behind(world: World) -> None:
    world.backup()
    stop = Stop()

    def ended(_on_line: OnLine, given: Stop) -> int:
        assert given is stop
        given.set()
        return -15

    world.launcher.script = ended
    with pytest.raises(Stopped):
        run_backup(OPTIONS, world.outside(stop))
    assert "Running" == world.status(BACKUPS)["phase"]


def test_a_signal_after_br_is_done_loses_no_backup(world: World) -> None:
    world.backup()
    stop = Stop()

    def done(_on_line: OnLine, given: Stop) -> int:
        writing_meta(world)()
        given.set()
        return 0

    world.launcher.script = done
    run_backup(OPTIONS, world.outside(stop))
    assert "Complete" == world.status(BACKUPS)["phase"]


@pytest.mark.rule("backup-7.2")
def test_reports_a_missing_or_recreated_backup(world: World) -> None:
    with pytest.raises(RecordGone, match=r"cannot work for Backup ns/demo: it does not exist"):
        run_backup(OPTIONS, world.outside())
    world.backup()

    def recreate() -> None:
        world.client.delete(BACKUPS, NAME, NAMESPACE)
        world.backup()
        writing_meta(world)()

    world.launcher.script = printing(then=recreate)
    with pytest.raises(RecordGone, match="another one has its name"):
        run_backup(OPTIONS, world.outside())
    assert {"phase": "Scheduled"} == world.status(BACKUPS)


@pytest.mark.rule("backup-7.4")
def test_a_backup_without_br_is_an_export(world: World) -> None:
    world.backup(br=None, **{"from": {"host": "tidb", "secretName": "s"}})
    with pytest.raises(Unusable, match=r"spec\.br is missing"):
        run_backup(OPTIONS, world.outside())


@pytest.mark.parametrize("mode", ["volume-snapshot"])
def test_rejects_unsupported_modes_by_name(world: World, mode: str) -> None:
    with pytest.raises(NotBuilt, match=f"backup --mode={mode} is not built yet"):
        run_backup(replace(OPTIONS, mode=mode), world.outside())


def test_progress_is_written_now_and_then(world: World) -> None:
    world.backup()
    written: list[float] = []

    def much(on_line: OnLine, _stop: Stop) -> int:
        for percent in range(1, 101):
            on_line(f'[progress] [step="Full Backup"] [progress={percent}.00%]', False)
            progresses = world.status(BACKUPS)["progresses"]
            written.append(progresses[-1]["progress"])
            world.clock.step(0.1)
        writing_meta(world)()
        return 0

    world.launcher.script = much
    run_backup(OPTIONS, world.outside())
    assert 100 == written[-1]
    assert 5 == len(set(written))
    assert sorted(written) == written


def test_a_server_that_refuses_progress_does_not_end_the_backup(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.backup()
    monkeypatch.setattr(br, "_EVERY", 0.0)
    refused: list[str] = []

    def gone() -> None:
        world.client.patch(BACKUPS, NAME, NAMESPACE, {"metadata": {"labels": {"x": str(len(refused))}}})

    def script(on_line: OnLine, _stop: Stop) -> int:
        for percent in range(3):
            gone()
            on_line(f'[progress] [step="s"] [progress={percent}%]', False)
        writing_meta(world)()
        return 0

    world.launcher.script = script
    run_backup(OPTIONS, world.outside())
    assert "Complete" == world.status(BACKUPS)["phase"]


@pytest.mark.parametrize("verb", ["list", "write", "delete"])
def test_retries_a_storage_that_fails_briefly_before_br_runs(world: World, verb: str) -> None:
    world.backup()
    world.storage.fail = failing(verb, 1, 2, 3)
    world.launcher.script = printing(then=writing_meta(world))
    run_backup(OPTIONS, world.outside())
    assert 7 == world.clock.now()


def test_reports_a_failing_storage_before_br_runs(world: World) -> None:
    world.backup()
    world.storage.fail = failing("list", error=StorageError("list", WHERE, "status 503"))
    assert "status 503" in failure(world)[1]
    assert 6 == world.storage.calls.count("list")
    assert [] == world.launcher.commands


def test_a_signal_ends_the_pauses(world: World) -> None:
    world.backup()
    world.storage.fail = failing("list")
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        run_backup(OPTIONS, world.outside(stop))
    assert 1 == world.storage.calls.count("list")
