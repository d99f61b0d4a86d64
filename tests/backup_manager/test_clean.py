"""Deletion of the files of a deleted Backup (backup.md 7.8)."""

import pytest

from apis.backups import CleanOption
from backup_manager.clean import CleanOptions, pace_of, run_clean
from backup_manager.outcomes import JobFailed, NotBuilt, Stopped
from backup_manager.storage.deletion import Pace
from backup_manager.storage.location import Location
from kube.objects import Json
from kube.resources import BACKUPS
from ports.stopping import Stop
from tests.backup_manager.storage.fakes import failing
from tests.backup_manager.worlds import NAME, NAMESPACE, World

OPTIONS = CleanOptions(NAMESPACE, NAME)
DONE = {
    "phase": "Clean",
    "backupPath": "s3://bucket/some/prefix",
    "conditions": [{"type": "Clean", "status": "False"}],
}


def failure(world: World) -> tuple[str, str, str]:
    with pytest.raises(JobFailed):
        run_clean(OPTIONS, world.outside())
    last = world.status(BACKUPS)["conditions"][-1]
    return last["type"], last["reason"], last["message"]


def opened(world: World) -> Location:
    [(location, _)] = world.opened
    return location


@pytest.mark.rule("backup-7.8")
def test_deletes_all_files_and_sets_the_condition(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects |= {f"{number}.sst": b"x" for number in range(30)}
    run_clean(OPTIONS, world.outside())
    assert {} == world.storage.objects
    [clean] = world.status(BACKUPS)["conditions"]
    assert ("Clean", "True") == (clean["type"], clean["status"])
    assert ("bucket", "some/prefix") == (opened(world).bucket, opened(world).prefix)


@pytest.mark.rule("backup-7.8")
def test_a_second_pod_of_a_clean_backup_does_nothing(world: World) -> None:
    world.backup(status=DONE | {"conditions": [{"type": "Clean", "status": "True"}]})
    run_clean(OPTIONS, world.outside())
    assert [] == world.storage.calls


@pytest.mark.rule("backup-7.8")
def test_without_a_path_there_is_nothing_to_delete(world: World) -> None:
    world.backup(status={"phase": "Failed"})
    world.storage.objects["x"] = b""
    assert ("Failed", "BackupPathIsEmpty") == failure(world)[:2]
    assert {"x"} == world.storage.objects.keys()


@pytest.mark.rule("backup-7.8")
def test_reports_remaining_files(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects["x"] = b""
    world.storage.fail = failing("delete")
    type_, reason, message = failure(world)
    assert ("CleanFailed", "CleanBackupDataFailed") == (type_, reason)
    assert "objects are left after 5 rounds" in message
    assert 5 == world.storage.calls.count("delete")


@pytest.mark.rule("backup-7.8")
def test_a_whole_bucket_is_never_cleaned(world: World) -> None:
    world.backup(status=DONE | {"backupPath": "s3://bucket"}, s3={"provider": "aws", "bucket": "bucket"})
    world.storage.objects["x"] = b""
    assert "the prefix is empty" in failure(world)[2]
    assert {"x"} == world.storage.objects.keys()


VOLUME = {"volume": {"name": "v"}, "volumeMount": {"name": "v", "mountPath": "/mnt/backup"}}


@pytest.mark.parametrize(
    ("path", "spec", "place"),
    [
        ("s3://bucket/mine", {"s3": {"provider": "aws", "bucket": "bucket", "prefix": "others"}}, "s3://bucket/mine"),
        ("s3://mine/a", {"s3": {"provider": "aws", "bucket": "others", "prefix": "a"}}, "s3://mine/a"),
        ("gcs://bucket/mine/", {"s3": None, "gcs": {"projectId": "p", "bucket": "b"}}, "gcs://bucket/mine"),
        ("azure://box/mine/", {"s3": None, "azblob": {"container": "box", "prefix": "x"}}, "azure://box/mine"),
        ("local:///mnt/backup/a/b", {"s3": None, "local": VOLUME | {"prefix": "a"}}, "local:///mnt/backup/a/b"),
    ],
)
@pytest.mark.rule("backup-7.8")
def test_deletes_files_at_the_place_of_the_backup(world: World, path: str, spec: Json, place: str) -> None:
    world.backup(status=DONE | {"backupPath": path}, **spec)
    run_clean(OPTIONS, world.outside())
    assert place == str(opened(world))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("s3://bucket/a", "'s3://bucket/a' is not in spec.local"),
        ("local:///mnt/a", "'local:///mnt/a' is not below spec.local.volumeMount.mountPath, /mnt/backup"),
    ],
)
@pytest.mark.rule("backup-7.8")
def test_deletes_nothing_at_a_place_outside_the_spec(world: World, path: str, why: str) -> None:
    world.backup(status=DONE | {"backupPath": path}, s3=None, local=VOLUME | {"prefix": "a"})
    way_out = "and the files are where status.backupPath says: name that storage in the spec again"
    assert ("CleanFailed", "CleanBackupDataFailed", f"{why}, {way_out}") == failure(world)
    assert [] == world.opened


@pytest.mark.parametrize(
    ("option", "batched", "pace"),
    [
        (CleanOption(page_size=7, batch_concurrency=3, retry_count=2), True, Pace(7, 3, 2)),
        (CleanOption(page_size=7, routine_concurrency=100), False, Pace(7, 10, 5)),
        (CleanOption(page_size=7, routine_concurrency=5, backoff_enabled=True), False, Pace(7, 1, 5, True)),
    ],
)
@pytest.mark.rule("backup-7.8")
def test_options(option: CleanOption, batched: bool, pace: Pace) -> None:
    assert pace == pace_of(option, is_batched=batched)


@pytest.mark.parametrize("disabled", [True, False])
@pytest.mark.rule("backup-7.8")
def test_batches_can_be_disabled(world: World, disabled: bool) -> None:
    world.backup(status=DONE, cleanOption={"disableBatchConcurrency": disabled})
    run_clean(OPTIONS, world.outside())
    [(_, bulk)] = world.opened
    assert disabled is not bulk


@pytest.mark.rule("backup-7.8")
def test_deletes_the_archive_of_an_export_and_unfinished_uploads(world: World) -> None:
    path = "s3://bucket/some/prefix/backup-2026-01-01T00:00:00Z.tgz"
    world.backup(br=None, status=DONE | {"backupPath": path})
    archive = "backup-2026-01-01T00:00:00Z.tgz"
    world.storage.objects |= {archive: b"", f"{archive}.tmp": b"", "backup-other.tgz": b""}
    run_clean(OPTIONS, world.outside())
    assert {"backup-other.tgz"} == world.storage.objects.keys()
    assert ("bucket", "some/prefix") == (opened(world).bucket, opened(world).prefix)


@pytest.mark.rule("backup-7.8")
def test_rejects_a_path_that_is_not_an_archive(world: World) -> None:
    world.backup(br=None, status=DONE)
    assert "is no archive in spec.s3" in failure(world)[2]


def test_a_signal_leaves_the_rest_to_another_pod(world: World) -> None:
    world.backup(status=DONE)
    world.storage.objects["x"] = b""
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        run_clean(OPTIONS, world.outside(stop))
    assert [("Clean", "False")] == [(each["type"], each["status"]) for each in world.status(BACKUPS)["conditions"]]


def test_volume_snapshots_are_not_supported(world: World) -> None:
    world.backup(status=DONE, backupMode="volume-snapshot")
    with pytest.raises(NotBuilt, match="clean of a volume snapshot"):
        run_clean(OPTIONS, world.outside())
