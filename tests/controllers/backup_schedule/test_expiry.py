"""Expired backups are removed after a live read, unless another object still needs them (backup.md 5.3)."""

from datetime import UTC, datetime, timedelta

import pytest

from apis import tso
from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS, RESTORES
from rehearsal.operator import USER
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup_schedule.schedules_world import DAY, HOUR, LOG, SchedulesWorld

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def night(day: int) -> str:
    """The backup of a night of January."""
    return f"nightly-2026-01-{day:02}t03-00-00"


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_by_number_old_ones_go_with_their_jobs(world: SchedulesWorld) -> None:
    world.schedule(maxBackups=2)
    world.nights(3)
    world.run(3)
    assert ([night(2), night(3)], [f"backup-{night(2)}", f"backup-{night(3)}"]) == (world.backups(), world.jobs())
    assert "SuccessfulDelete" in [reason for reason, _ in world.events()]


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_by_age_old_ones_go(world: SchedulesWorld) -> None:
    world.schedule(maxReservedTime="48h", maxBackups=1)
    world.nights(5)
    assert [night(3), night(4), night(5)] == world.backups()


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_old_ones_go_while_the_schedule_pauses(world: SchedulesWorld) -> None:
    world.schedule()
    world.nights(4)
    world.change(pause=True, maxBackups=1)
    assert [night(4)] == world.backups()


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_running_backups_and_the_last_good_one_before_them_stay(world: SchedulesWorld) -> None:
    world.schedule(maxBackups=1)
    world.nights(1)
    for day in (2, 3):
        world.pass_until(f"2026-01-{day:02}T03:00:00Z")
        world.pass_time(HOUR)
        world.fail()
    world.pass_until("2026-01-04T03:00:00Z")
    assert [night(1), night(3), night(4)] == world.backups()


@pytest.mark.rule("backup-5.3")
def test_similar_backups_of_other_owners_stay(world: SchedulesWorld) -> None:
    labels = {"app.kubernetes.io/instance": "nightly", "tidb.pingcap.com/backup-schedule": "nightly"}
    done = {"conditions": [{"type": "Complete", "status": "True"}], "commitTs": "1"}
    body = tree("Backup", by_br(), status=done, name="mine", namespace=NAMESPACE, labels=labels)
    world.admin.create(BACKUPS, body, NAMESPACE)
    world.schedule(maxBackups=1)
    world.nights(2)
    assert ["mine", night(2)] == world.backups()


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_the_running_log_backup_stays_and_the_base_of_its_chain(world: SchedulesWorld) -> None:
    """v1.6 deletes the log backup by number, and a base where a failed backup is younger."""
    world.schedule(maxReservedTime="48h", logBackupTemplate=LOG)
    world.log_saved_until(NEW_YEAR + timedelta(hours=1), NEW_YEAR)
    for _ in range(4):
        world.nights(1)
        world.log_saved_until(world.clock.wall())
    # data from the 4th at 4 o'clock, less two days: the base is the snapshot of the 2nd
    assert ["log-nightly", night(2), night(3), night(4)] == world.backups()
    assert (
        str(tso.of_time(NEW_YEAR + timedelta(days=1, hours=4)))
        == world.backup("log-nightly")["spec"]["logTruncateUntil"]
    )


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_the_log_is_not_cut_while_a_restore_reads_it(world: SchedulesWorld) -> None:
    world.schedule(maxReservedTime="24h", logBackupTemplate=LOG)
    world.log_saved_until(NEW_YEAR + timedelta(hours=1), NEW_YEAR)
    reading = {"br": {"cluster": "other"}, "s3": world.backup("log-nightly")["spec"]["s3"]}
    world.admin.create(RESTORES, tree("Restore", reading, name="back", namespace=NAMESPACE), NAMESPACE)
    for _ in range(3):
        world.nights(1)
        world.log_saved_until(world.clock.wall())
    assert "logTruncateUntil" not in world.backup("log-nightly")["spec"]
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    world.admin.patch(RESTORES, "back", NAMESPACE, {"status": done})
    world.pass_time(120)
    assert "logTruncateUntil" in world.backup("log-nightly")["spec"]


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_a_part_of_the_log_that_is_not_compacted_is_not_truncated(world: SchedulesWorld) -> None:
    compaction: Json = {"br": {"cluster": "basic"}, "s3": S3 | {"prefix": "log"}}
    world.schedule(
        maxReservedTime="24h", logBackupTemplate=LOG, compactBackupTemplate=compaction, compactInterval="1000h"
    )
    world.log_saved_until(NEW_YEAR + timedelta(hours=1), NEW_YEAR)
    for _ in range(3):
        world.nights(1)
        world.log_saved_until(world.clock.wall())
    assert "logTruncateUntil" not in world.backup("log-nightly")["spec"]


@pytest.mark.parametrize(("reason", "left"), [("FilesDiffer", [1, 2]), ("NotVerified", [2])])
@pytest.mark.rule("backup-5.3")
def test_a_backup_counts_less_only_if_its_files_were_looked_at(
    world: SchedulesWorld, reason: str, left: list[int]
) -> None:
    world.schedule()
    world.nights(2)
    said = {"type": "Verified", "status": "False", "reason": reason}
    world.write(night(2), conditions=[*world.status(night(2))["conditions"], said])
    world.change(maxBackups=1)
    assert [night(each) for each in left] == world.backups()


@pytest.mark.parametrize("keep", [{"maxBackups": 1}, {"maxReservedTime": "24h"}])
@pytest.mark.rule("backup-5.3")
def test_volume_snapshots_of_v1_6_outlive_the_take_over(world: SchedulesWorld, keep: Json) -> None:
    volumes = by_br(backupMode="volume-snapshot")
    world.schedule(backupTemplate=volumes, **keep)
    owner = world.admin.get(BACKUP_SCHEDULES, "nightly", NAMESPACE)
    reference = {"apiVersion": "pingcap.com/v1alpha1", "kind": "BackupSchedule", "name": "nightly", "controller": True}
    for day, end in ((1, "VolumeBackupComplete"), (2, "VolumeBackupFailed"), (3, "VolumeBackupComplete")):
        done = {"phase": end, "commitTs": "1", "conditions": [{"type": end, "status": "True"}]}
        body = tree("Backup", volumes, status=done, name=f"volumes-{day}", namespace=NAMESPACE)
        body["metadata"]["ownerReferences"] = [reference | {"uid": owner.metadata.uid}]
        world.admin.create(BACKUPS, body, NAMESPACE)
        world.pass_time(DAY)
    world.pass_time(4 * DAY)
    world.run(60)
    assert ["volumes-1", "volumes-2", "volumes-3"] == world.backups()
    assert {"VolumeBackupComplete", "VolumeBackupFailed"} == {world.phase(each) for each in world.backups()}
    assert ("True", "Complete") == world.says("LastBackupComplete")[:2]
    assert "False" == world.says("Valid")[0]


@pytest.mark.rule("backup-5.3")
def test_a_stale_view_of_a_backup_that_is_doubtful_does_not_cost_the_last_good_one(world: SchedulesWorld) -> None:
    """The cache shows two good ones; live, the files of the newer are missing."""
    world.schedule()
    world.nights(2)
    world.operator.caches[BACKUPS].blind = True
    said = {"type": "Verified", "status": "False", "reason": "FilesDiffer"}
    conditions = [*world.status(night(2))["conditions"], said]
    world.admin.patch(BACKUPS, night(2), NAMESPACE, {"status": {"conditions": conditions}})
    world.change(maxBackups=1)
    assert [night(1), night(2)] == world.backups()


@pytest.mark.slow
@pytest.mark.rule("backup-5.3")
def test_a_backup_that_restarted_meanwhile_is_not_deleted(world: SchedulesWorld) -> None:
    world.schedule()
    world.nights(3)
    world.operator.caches[BACKUPS].blind = True
    world.admin.patch(BACKUPS, night(1), NAMESPACE, {"status": {"phase": "Running", "conditions": None}})
    world.change(maxBackups=1)
    assert [night(1), night(3)] == world.backups()


@pytest.mark.parametrize("states", [("Complete", "Complete", "Complete"), ("Failed", "Complete", "Failed")])
@pytest.mark.rule("backup-5.3")
def test_old_compactions_go_but_for_the_last(world: SchedulesWorld, states: tuple[str, ...]) -> None:
    world.schedule(maxBackups=1, logBackupTemplate=LOG)
    owner = world.backup("log-nightly")["metadata"]["ownerReferences"]
    for number, state in enumerate(states):
        spec = {"br": {"cluster": "basic"}, "s3": S3, "startTs": "1", "endTs": "2"}
        status = {"state": state, "endTs": "2"}
        body = tree("CompactBackup", spec, status=status, name=f"c{number}", namespace=NAMESPACE, ownerReferences=owner)
        world.admin.create(COMPACT_BACKUPS, body, NAMESPACE)
        world.pass_time(60)
    assert ["c2"] == world.compactions()


def test_a_backup_that_its_files_keep_is_deleted_once(world: SchedulesWorld) -> None:
    world.schedule(maxBackups=1, backupTemplate=by_br(cleanPolicy="Delete"))
    world.nights(2)
    assert [night(1), night(2)] == world.backups()
    assert world.backup(night(1))["metadata"]["deletionTimestamp"]
    world.pass_time(DAY / 4)
    assert 1 == world.world.server.audit.count(user=USER, verb="delete", resource=str(BACKUPS))
