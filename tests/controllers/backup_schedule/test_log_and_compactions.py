"""The log backup of a schedule, and its compactions (backup.md 5.1, 5.4)."""

from datetime import UTC, datetime, timedelta

import pytest

from apis import tso
from apis.times import stamp
from controllers.backup_schedule.compactions import Span, next_span
from kube.objects import Json
from kube.resources import BACKUPS, COMPACT_BACKUPS
from tests.apis.backups import S3, tree
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup_schedule.schedules_world import HOUR, LOG, SchedulesWorld

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(hours=1)
COMPACTION: Json = {"br": {"cluster": "basic"}, "s3": S3 | {"prefix": "log"}}


@pytest.mark.rule("backup-5.1")
def test_the_log_begins_with_the_schedule_and_before_the_first_snapshot(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG)
    assert ["log-nightly"] == world.backups()
    assert ("log-nightly", "2026-01-01T00:00:00Z") == (world.of()["logBackup"], world.of()["logBackupStartTs"])
    assert "log/log-2026-01-01t00-00-00" == world.backup("log-nightly")["spec"]["s3"]["prefix"]
    world.pass_time(3 * HOUR)
    assert 2 == len(world.backups())


@pytest.mark.rule("backup-5.1")
def test_when_the_log_began_follows_from_the_backup(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG)
    world.write_schedule(logBackup=None, logBackupStartTs=None)
    world.pass_time(HOUR)
    assert ("log-nightly", "2026-01-01T00:00:00Z") == (world.of()["logBackup"], world.of()["logBackupStartTs"])


@pytest.mark.rule("backup-5.1")
def test_a_deleted_log_backup_is_recreated_and_stops_no_snapshots(world: SchedulesWorld) -> None:
    """In v1.6 the snapshots then stop."""
    world.schedule(logBackupTemplate=LOG)
    world.admin.patch(BACKUPS, "log-nightly", NAMESPACE, {"metadata": {"finalizers": None}})
    world.admin.delete(BACKUPS, "log-nightly", NAMESPACE)
    world.pass_time(3 * HOUR)
    assert ["log-nightly", "nightly-2026-01-01t03-00-00"] == world.backups()
    assert "2026-01-01T03:00:00Z" == world.of()["logBackupStartTs"]
    assert "LogBackupDeleted" in [reason for reason, _ in world.events()]


@pytest.mark.rule("backup-5.1")
def test_the_status_shows_whether_the_log_is_saved(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG)
    assert ("True", "Scheduled", "see Backup log-nightly") == world.says("LogBackupRuns")
    world.write("log-nightly", phase="Paused")
    assert ("False", "Paused") == world.says("LogBackupRuns")[:2]


@pytest.mark.rule("backup-5.1")
def test_a_log_backup_that_is_being_deleted_saves_nothing(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG)
    world.pd.task("log-nightly").begin(1)
    world.log_saved_until(NEW_YEAR, NEW_YEAR)
    world.admin.delete(BACKUPS, "log-nightly", NAMESPACE)
    world.run()
    message = "Backup log-nightly is being deleted; its conditions say what that waits for"
    assert ("False", "Deleted", message) == world.says("LogBackupRuns")


@pytest.mark.rule("backup-5.1")
def test_a_log_backup_continues_without_its_template_until_it_is_deleted(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG)
    world.change(logBackupTemplate=None)
    assert (["log-nightly"], "True") == (world.backups(), world.says("LogBackupRuns")[0])
    world.admin.patch(BACKUPS, "log-nightly", NAMESPACE, {"metadata": {"finalizers": None}})
    world.admin.delete(BACKUPS, "log-nightly", NAMESPACE)
    world.run()
    assert ("False", "NotWanted") == world.says("LogBackupRuns")[:2]


@pytest.mark.rule("backup-5.1")
def test_while_the_schedule_pauses_no_log_is_begun_and_nothing_read(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG, pause=True)
    assert ([], ("False", "Paused")) == (world.backups(), world.says("LogBackupRuns")[:2])
    before = world.requests()
    world.pass_time(HOUR)
    assert before == world.requests()


@pytest.mark.rule("backup-5.1")
def test_a_log_backup_of_another_is_left_alone_and_named(world: SchedulesWorld) -> None:
    world.admin.create(BACKUPS, tree("Backup", LOG, name="log-nightly", namespace=NAMESPACE), NAMESPACE)
    world.schedule(logBackupTemplate=LOG)
    assert ("False", "NameTaken") == world.says("LogBackupRuns")[:2]
    assert "ownerReferences" not in world.backup("log-nightly")["metadata"]
    world.pass_time(3 * HOUR)
    assert "nightly-2026-01-01t03-00-00" in world.backups()


@pytest.mark.rule("backup-5.1")
def test_a_template_of_another_mode_is_refused_and_stops_no_snapshots(world: SchedulesWorld) -> None:
    world.schedule(logBackupTemplate=LOG | {"backupMode": "snapshot"})
    assert 'spec.logBackupTemplate.backupMode: "snapshot": must be log' == world.says("Valid")[2]
    world.pass_time(3 * HOUR)
    assert ["nightly-2026-01-01t03-00-00"] == world.backups()


def span(checkpoint: float, now: float = 99, least: str = "", **status: float) -> tuple[float, float] | None:
    """The next span to compact, None if none is due; like all times here, in hours since New Year."""

    def time(hours: float) -> datetime:
        return NEW_YEAR + hours * EVERY

    known = {"logBackupStartTs": 0.0} | status
    said = {name: stamp(time(hours)) for name, hours in known.items()}
    found = next_span(said, EVERY, tso.of_time(time(checkpoint)), least, time(now))
    return ((found.start - NEW_YEAR) / EVERY, (found.end - NEW_YEAR) / EVERY) if isinstance(found, Span) else None


@pytest.mark.rule("backup-5.4")
def test_the_next_part_begins_where_the_last_ended() -> None:
    assert (0, 2) == span(2)
    assert (2, 4) == span(4, lastCompactProgress=2)
    assert (2, 5) == span(50, lastCompactProgress=2), "to catch up, three intervals"


@pytest.mark.rule("backup-5.4")
def test_no_compaction_is_due_before_an_interval_has_passed() -> None:
    assert span(0.5) is None
    assert span(4, lastCompactProgress=4) is None
    assert span(4, now=5, lastCompactProgress=2, lastCompactExecutionTs=4.5) is None
    assert (2, 4) == span(4, now=5.5, lastCompactProgress=2, lastCompactExecutionTs=4.5)


@pytest.mark.rule("backup-5.4")
def test_a_clock_that_was_put_back_does_not_stop_compactions() -> None:
    assert (2, 4) == span(4, now=5, lastCompactProgress=2, lastCompactExecutionTs=900)


@pytest.mark.rule("backup-5.4")
def test_nothing_older_than_requested_is_compacted() -> None:
    assert (3, 4) == span(4, least="2026-01-01T03:00:00Z")


@pytest.mark.rule("backup-5.4")
def test_compactions_of_an_earlier_log_do_not_delay_the_present_one() -> None:
    assert (7, 9) == span(9, logBackupStartTs=7, lastCompactProgress=2)
    assert (7, 10) == span(20, logBackupStartTs=7, lastCompactProgress=2)


@pytest.fixture
def compacting(world: SchedulesWorld) -> SchedulesWorld:
    """A log that is saved up to two hours after New Year."""
    world.schedule(schedule="0 0 1 1 *", logBackupTemplate=LOG, compactBackupTemplate=COMPACTION, compactInterval="1h")
    world.pass_time(2 * HOUR)
    world.log_saved_until(NEW_YEAR + 2 * EVERY, NEW_YEAR)
    return world


def ended(world: SchedulesWorld, state: str, end: str = "") -> None:
    """The last compaction has ended."""
    status = {"state": state, "endTs": end}
    world.admin.patch(COMPACT_BACKUPS, world.compactions()[-1], NAMESPACE, {"status": status})
    world.run()


@pytest.mark.rule("backup-5.4")
def test_a_compaction_has_the_part_in_utc_and_the_place_of_the_log(compacting: SchedulesWorld) -> None:
    assert ["compact-nightly-2026-01-01t02-00-00"] == compacting.compactions()
    spec = compacting.admin.get(COMPACT_BACKUPS, compacting.compactions()[0], NAMESPACE).decode()["spec"]
    assert ("2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z") == (spec["startTs"], spec["endTs"])
    assert "log/log-2026-01-01t00-00-00" == spec["s3"]["prefix"]
    assert compacting.compactions()[0] == compacting.of()["lastCompact"]


@pytest.mark.rule("backup-5.4")
def test_the_next_waits_for_the_last(compacting: SchedulesWorld) -> None:
    compacting.pass_time(5 * HOUR)
    compacting.log_saved_until(NEW_YEAR + 7 * EVERY)
    assert 1 == len(compacting.compactions())
    ended(compacting, "Complete", str(tso.of_time(NEW_YEAR + 2 * EVERY)))
    assert 2 == len(compacting.compactions())
    assert "2026-01-01T02:00:00Z" == compacting.of()["lastCompactProgress"]


@pytest.mark.parametrize("reached", ["", "1", str(tso.of_time(NEW_YEAR + 1.5 * EVERY))])
@pytest.mark.rule("backup-5.4")
def test_a_part_in_which_nothing_was_logged_is_done_and_the_next_one_follows(
    compacting: SchedulesWorld, reached: str
) -> None:
    """A cluster that was suspended for longer than three intervals; v1.6 never gets beyond that."""
    for hours in range(3, 12):
        ended(compacting, "Complete", reached)
        compacting.pass_time(HOUR)
        compacting.log_saved_until(NEW_YEAR + hours * EVERY)
    compactions = [compacting.admin.get(COMPACT_BACKUPS, each, NAMESPACE).decode() for each in compacting.compactions()]
    parts = [(each["spec"]["startTs"], each["spec"]["endTs"]) for each in compactions]
    assert [end for _, end in parts[:-1]] == [start for start, _ in parts[1:]]
    assert "2026-01-01T10:00:00Z" == compacting.of()["lastCompactProgress"]


@pytest.mark.rule("backup-5.4")
def test_a_compaction_that_ended_earlier_is_not_taken_for_the_next(compacting: SchedulesWorld) -> None:
    """Else the status would report the two in turns, without end."""
    for hours in (3, 4):
        ended(compacting, "Failed")
        compacting.pass_time(HOUR)
        compacting.log_saved_until(NEW_YEAR + hours * EVERY)
    *before, last = compacting.compactions()
    for each in before:
        compacting.admin.patch(COMPACT_BACKUPS, each, NAMESPACE, {"status": {"state": "Complete"}})
    ended(compacting, "Failed")
    assert last == compacting.of()["lastCompact"]
    compacting.pass_time(HOUR)
    compacting.log_saved_until(NEW_YEAR + 5 * EVERY)
    assert 4 == len(compacting.compactions())


@pytest.mark.rule("backup-5.4")
def test_a_failed_compaction_is_repeated(compacting: SchedulesWorld) -> None:
    ended(compacting, "Failed")
    compacting.pass_time(HOUR)
    compacting.log_saved_until(NEW_YEAR + 3 * EVERY)
    assert 2 == len(compacting.compactions())
    spec = compacting.admin.get(COMPACT_BACKUPS, compacting.compactions()[1], NAMESPACE).decode()["spec"]
    assert "2026-01-01T00:00:00Z" == spec["startTs"]


@pytest.mark.rule("backup-5.4")
def test_a_log_backup_missing_from_the_status_is_found(compacting: SchedulesWorld) -> None:
    compacting.write_schedule(lastCompact=None, lastCompactExecutionTs=None)
    compacting.restart()
    compacting.pass_time(60)
    assert 1 == len(compacting.compactions())
    assert compacting.compactions()[0] == compacting.of()["lastCompact"]


@pytest.mark.rule("backup-5.1")
def test_logs_of_schedules_created_at_once_have_separate_directories(world: SchedulesWorld) -> None:
    """Clusters with one prefix in one manifest: the directory is named after the second in which the log began."""
    world.add_cluster("other")
    for name, cluster in (("nightly", "basic"), ("other", "other"), ("third", "basic")):
        world.schedule(name, logBackupTemplate=LOG | {"br": {"cluster": cluster}})
    prefixes = {world.backup(f"log-{name}")["spec"]["s3"]["prefix"] for name in ("nightly", "other", "third")}
    assert 3 == len(prefixes)
    starts = {name: world.of(name)["logBackupStartTs"] for name in ("nightly", "other", "third")}
    assert 3 == len(set(starts.values()))


@pytest.mark.rule("CMP-18", "CMP-19")
def test_sharded_compactions_follow_each_other(world: SchedulesWorld) -> None:
    """v1.7 compacts the first part again and again, because no shard reports an end."""
    shards = COMPACTION | {"mode": "sharded", "shardCount": 2, "physicalFileCacheCapacity": "1Gi", "name": "x"}
    world.schedule(schedule="0 0 1 1 *", logBackupTemplate=LOG, compactBackupTemplate=shards, compactInterval="1h")
    world.pass_time(2 * HOUR)
    world.log_saved_until(NEW_YEAR + 2 * EVERY, NEW_YEAR)
    for hours in range(3, 6):
        ended(world, "Complete")
        world.pass_time(HOUR)
        world.log_saved_until(NEW_YEAR + hours * EVERY)
    specs = [world.admin.get(COMPACT_BACKUPS, each, NAMESPACE).decode()["spec"] for each in world.compactions()]
    assert [f"2026-01-01T0{hour}:00:00Z" for hour in (0, 2, 3, 4)] == [each["startTs"] for each in specs]
    fields = ("mode", "shardCount", "physicalFileCacheCapacity", "name")
    assert [("sharded", 2, "1Gi", "x")] * 4 == [tuple(each[field] for field in fields) for each in specs]
