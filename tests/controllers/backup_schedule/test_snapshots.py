"""One backup for each time of the schedule, never two at a time (backup.md 5.1, 5.2)."""

from datetime import timedelta

import pytest

from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES, BACKUPS
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup_schedule.schedules_world import DAY, HOUR, SchedulesWorld

FIRST = "nightly-2026-01-01t03-00-00"
SECOND = "nightly-2026-01-02t03-00-00"


@pytest.mark.rule("backup-5.1")
def test_a_backup_is_created_when_it_is_due(world: SchedulesWorld) -> None:
    world.schedule(labels={"team": "ops"})
    assert ([], ("True", "Waiting", "the next backup is due at 2026-01-01T03:00:00Z")) == (
        world.backups(),
        world.says(),
    )
    world.pass_time(3 * HOUR - 1)
    assert [] == world.backups()
    world.pass_time(1)
    assert [FIRST] == world.backups()
    made = world.backup(FIRST)
    assert "full/basic-pd.lab-2379-2026-01-01t03-00-00" == made["spec"]["s3"]["prefix"]
    assert {
        "app.kubernetes.io/name": "backup-schedule",
        "app.kubernetes.io/managed-by": "backup-schedule-operator",
        "app.kubernetes.io/instance": "nightly",
        "tidb.pingcap.com/backup-schedule": "nightly",
        "team": "ops",
    } == made["metadata"]["labels"]
    assert (FIRST, "2026-01-01T03:00:00Z") == (world.of()["lastBackup"], world.of()["lastBackupTime"])
    assert "the next backup is due at 2026-01-02T03:00:00Z" == world.says()[2]
    assert ("SuccessfulCreate", f"create Backup lab/{FIRST} for backupSchedule/nightly successful") in world.events()


@pytest.mark.rule("backup-5.2")
def test_two_schedules_that_are_due_at_once_have_a_place_each(world: SchedulesWorld) -> None:
    """v1.6 names the place after the moment of the making, by chance another one."""
    world.schedule()
    world.schedule("mirror")
    world.schedule("elsewhere", backupTemplate=by_br(s3=S3 | {"prefix": "other"}))
    world.pass_time(3 * HOUR)
    time = "2026-01-01t03-00-00"
    assert [f"other/basic-pd.lab-2379-{time}", f"full/basic-pd.lab-2379-{time}-mirror"] == [
        world.backup(f"{name}-{time}")["spec"]["s3"]["prefix"] for name in ("elsewhere", "mirror")
    ]
    assert f"full/basic-pd.lab-2379-{time}-nightly" == world.backup(FIRST)["spec"]["s3"]["prefix"]


@pytest.mark.rule("backup-5.1")
def test_the_next_one_waits_until_the_last_has_ended(world: SchedulesWorld) -> None:
    world.schedule()
    world.pass_time(3 * HOUR)
    world.pass_time(DAY + 60)
    said = f"the backup due at 2026-01-02T03:00:00Z waits until Backup {FIRST} has ended"
    assert ([FIRST], ("True", "LastBackupRuns", said)) == (world.backups(), world.says())
    assert 1 == [reason for reason, _ in world.events()].count("LastBackupRuns")
    world.fail()
    assert [FIRST, SECOND] == world.backups()


def test_a_schedule_reports_what_the_previous_backup_waits_for_and_continues_afterwards(
    world: SchedulesWorld,
) -> None:
    """v1.6 stops in silence behind a Backup that waits in silence."""
    world.set_serving(stores=1)
    world.schedule()
    world.pass_time(3 * HOUR)
    world.pass_time(10)
    world.pass_time(DAY)
    _, reason, message = world.says()
    why = (
        f"the backup due at 2026-01-02T03:00:00Z waits until Backup {FIRST} has ended; since 2026-01-01T03:00:10Z it "
        "has been waiting for TidbCluster lab/basic, with which BR cannot work: 2 of 3 TiKV stores are not Up"
    )
    assert ("LastBackupRuns", why) == (reason, message.partition(" (")[0])
    assert 1 == [reason for reason, _ in world.events()].count("LastBackupRuns")
    world.set_serving()
    world.pass_time(60)
    world.complete(FIRST)
    assert [FIRST, SECOND] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_a_failure_before_there_was_a_job_does_not_stop_the_schedule(world: SchedulesWorld) -> None:
    """v1.6 waits forever for a backup that was never Scheduled."""
    world.set_ready(is_ready=False)
    world.schedule()
    world.pass_time(3 * HOUR)
    world.write(FIRST, phase="Failed", conditions=[{"type": "Failed", "status": "True"}])
    world.pass_time(DAY)
    assert [FIRST, SECOND] == world.backups()


@pytest.mark.slow
@pytest.mark.parametrize("days", [3, pytest.param(30, marks=pytest.mark.thorough)])
@pytest.mark.rule("backup-5.1")
def test_after_a_pause_there_is_one_backup(world: SchedulesWorld, days: int) -> None:
    world.schedule(schedule="*/10 * * * *")
    world.pass_time(600)
    world.complete()
    world.change(pause=True)
    assert ("False", "Paused", "spec.pause is true: no backups are made") == world.says()
    world.pass_time(days * DAY + 7)
    assert 1 == len(world.backups())
    world.change(pause=False)
    assert [f"nightly-2026-01-{days + 1:02}t00-10-00"] == world.backups()[1:]
    world.complete()
    world.pass_time(590)
    assert 2 == len(world.backups())
    world.pass_time(10)
    assert 3 == len(world.backups())


@pytest.mark.slow
@pytest.mark.parametrize("days", [3, pytest.param(30, marks=pytest.mark.thorough)])
@pytest.mark.rule("backup-5.1")
def test_a_process_that_was_away_makes_up_for_it_once(world: SchedulesWorld, days: int) -> None:
    world.schedule()
    world.world.advance(days * DAY)
    world.restart()
    world.run(5)
    assert [f"nightly-2026-01-{days:02}t03-00-00"] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_a_clock_that_is_set_back_neither_repeats_nor_delays_a_backup(world: SchedulesWorld) -> None:
    """v1.6 makes no backup until the clock has caught up."""
    world.clock.jump(timedelta(days=300))
    world.schedule()
    world.pass_time(3 * HOUR)
    world.complete()
    assert ["nightly-2026-10-28t03-00-00"] == world.backups()
    world.clock.jump(timedelta(days=-299))
    world.pass_time(31)
    world.pass_until("2026-01-03T03:00:01Z")
    assert "nightly-2026-01-03t03-00-00" in world.backups()
    assert 2 == len(world.backups())


@pytest.mark.rule("backup-5.1")
def test_after_a_small_step_back_the_clock_finds_the_existing_backup(world: SchedulesWorld) -> None:
    world.schedule()
    world.pass_time(3 * HOUR + 1)
    uid = world.backup(FIRST)["metadata"]["uid"]
    world.complete()
    world.clock.jump(timedelta(seconds=-10))
    world.pass_time(60)
    assert ([FIRST], uid) == (world.backups(), world.backup(FIRST)["metadata"]["uid"])
    assert "2026-01-01T03:00:00Z" == world.of()["lastBackupTime"]
    world.pass_time(DAY)
    assert [FIRST, SECOND] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_a_clock_that_is_put_forward_is_followed_at_the_next_resync(world: SchedulesWorld) -> None:
    world.schedule()
    world.clock.jump(timedelta(hours=5))
    world.pass_time(31)
    assert [FIRST] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_two_schedules_in_one_second_make_a_backup_each(world: SchedulesWorld) -> None:
    world.schedule("one")
    world.schedule("two")
    world.pass_time(3 * HOUR)
    assert ["one-2026-01-01t03-00-00", "two-2026-01-01t03-00-00"] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_of_a_group_one_makes_a_backup_at_a_time(world: SchedulesWorld) -> None:
    group = {"tidb.pingcap.com/backup-schedule-group": "shared"}
    world.schedule("one", labels=group)
    world.schedule("two", labels=group)
    world.pass_time(3 * HOUR)
    (made,) = world.backups()
    waiting = "two" if made.startswith("one") else "one"
    said = f"the backup due at 2026-01-01T03:00:00Z waits until Backup {made} has ended"
    assert ("True", "GroupRuns", said) == world.says(name=waiting)
    world.complete(made)
    assert [f"{each}-2026-01-01t03-00-00" for each in ("one", "two")] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_a_schedule_that_joins_a_group_waits_for_its_running_backup(world: SchedulesWorld) -> None:
    group = {"tidb.pingcap.com/backup-schedule-group": "shared"}
    world.schedule("one")
    world.pass_time(3 * HOUR)
    world.admin.patch(BACKUP_SCHEDULES, "one", NAMESPACE, {"metadata": {"labels": group}})
    world.schedule("two", labels=group, schedule="* * * * *")
    world.pass_time(120)
    assert ["one-2026-01-01t03-00-00"] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_a_taken_name_is_reported(world: SchedulesWorld) -> None:
    world.schedule()
    world.admin.create(BACKUPS, tree("Backup", by_br(), name=FIRST, namespace=NAMESPACE), NAMESPACE)
    world.pass_time(3 * HOUR)
    assert ("False", "NameTaken") == world.says()[:2]
    assert "ownerReferences" not in world.backup(FIRST)["metadata"]
    world.admin.delete(BACKUPS, FIRST, NAMESPACE)
    world.pass_time(60)
    assert "ownerReferences" in world.backup(FIRST)["metadata"]


@pytest.mark.rule("backup-5.1")
def test_reports_the_result_of_the_last_backup(world: SchedulesWorld) -> None:
    world.schedule()
    world.pass_time(3 * HOUR)
    assert "" == world.says("LastBackupComplete")[0]
    world.complete()
    good = f"{FIRST}, complete since 2026-01-01T03:00:00Z"
    assert ("True", "Complete", good) == world.says("LastBackupComplete")
    world.pass_time(DAY)
    world.fail()
    said = f"{SECOND}: no space; the last good one is {good}"
    assert ("False", "Failed", said) == world.says("LastBackupComplete")


@pytest.mark.rule("backup-5.2")
def test_a_template_without_storage_and_size_takes_the_schedules(world: SchedulesWorld) -> None:
    """v1.6 ignores the storage."""
    world.add_secret("password", password="PW")
    template = {"from": {"host": "basic-tidb", "secretName": "password"}}
    storage: Json = {"s3": {"provider": "aws", "bucket": "lab", "secretName": "keys"}}
    world.schedule(backupTemplate=template, storageClassName="fast", imagePullSecrets=[{"name": "hub"}], **storage)
    world.pass_time(3 * HOUR)
    spec = world.backup(FIRST)["spec"]
    assert ("100Gi", "fast", "lab", [{"name": "hub"}]) == (
        spec["storageSize"],
        spec["storageClassName"],
        spec["s3"]["bucket"],
        spec["imagePullSecrets"],
    )
    assert "prefix" not in spec["s3"]


@pytest.mark.rule("backup-5.1")
def test_an_invalid_spec_is_reported_and_applied_after_a_correction(world: SchedulesWorld) -> None:
    world.schedule(schedule="0 25 * * *")
    said = 'spec.schedule: "0 25 * * *": bad hour; write five fields such as 0 3 * * 1-5'
    assert ("False", "InvalidSpec", said) == world.says() == world.says("Valid")
    assert [("InvalidSpec", said)] == world.events()
    world.pass_time(DAY)
    assert [] == world.backups()
    world.change(schedule="0 3 * * *")
    assert ("True", "True") == (world.says()[0], world.says("Valid")[0])
    assert ["nightly-2026-01-01t03-00-00"] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_other_problems_stop_no_backups(world: SchedulesWorld) -> None:
    world.schedule(maxReservedTime="7d")
    said = 'spec.maxReservedTime: "7d": must be a duration such as 168h or 90m; for days, multiply by 24h'
    assert ("False", "InvalidSpec", said) == world.says("Valid")
    world.pass_time(3 * HOUR)
    assert [FIRST] == world.backups()


@pytest.mark.rule("backup-5.1")
def test_an_unreadable_template_is_reported(world: SchedulesWorld) -> None:
    world.schedule(backupTemplate={"s3": {"provider": "aws"}})
    assert ("False", "InvalidSpec") == world.says()[:2]
    assert "spec.backupTemplate.s3.bucket: is required; name the bucket" in world.says()[2]


def test_while_nothing_is_due_nothing_is_read_and_nothing_written(world: SchedulesWorld) -> None:
    world.schedule(maxBackups=3)
    world.nights(1)
    before = world.requests()
    world.pass_time(12 * HOUR)
    assert before == world.requests()


def test_a_schedule_that_waits_for_its_group_reads_and_writes_nothing(world: SchedulesWorld) -> None:
    group = {"tidb.pingcap.com/backup-schedule-group": "shared"}
    world.schedule("one", labels=group)
    world.schedule("two", labels=group)
    world.pass_time(3 * HOUR)
    world.say("Running", world.backups()[-1])
    world.pass_time(60.0)
    before = world.requests()
    world.pass_time(2 * HOUR)
    assert before == world.requests()
