"""Despite faults, each due time has one backup, and no needed backup is removed (backup.md 5.1, 5.3). The process
crashes before or after any of its writes, answers are lost, caches are outdated."""

from collections.abc import Callable

import pytest

from kube.resources import BACKUP_SCHEDULES, BACKUPS
from ports.transport import ByteStream, Request, RequestTimeout, Response, Transport
from tests.apis.backups import S3
from tests.controllers.backup_schedule.schedules_world import HOUR, LOG, SchedulesWorld

NIGHTS = [f"nightly-2026-01-{day:02}t03-00-00" for day in range(1, 6)]


class Killed(BaseException):
    """Errors that no handler may see."""


class Struck:
    """A transport whose `at`th and later writes meet a fault, before or after they take effect."""

    def __init__(self, inner: Transport, at: int, fault: BaseException, *, after: bool, once: bool) -> None:
        self.writes = 0
        self._inner, self._at, self._fault, self._after, self._once = inner, at, fault, after, once

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if request.is_read or "/events" in request.url:
            return self._inner.request(request)
        self.writes += 1
        if self.writes < self._at or (self._once and self.writes > self._at):
            return self._inner.request(request)
        if self._after and self.writes == self._at:
            self._inner.request(request)
        raise self._fault

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._inner.stream(request, idle_timeout)


def life_of(world: SchedulesWorld, at: int, fault: BaseException, *, after: bool, once: bool = False) -> list[Struck]:
    """Replace the process by one whose writes are struck; all of its transports."""
    made: list[Struck] = []

    def wrap(inner: Transport) -> Transport:
        made.append(Struck(inner, at, fault, after=after, once=once))
        return made[-1]

    world.operator = world.new_operator(3, wrap)
    return made


def third_night(world: SchedulesWorld) -> None:
    """The third night begins: a backup is due, the first one is to go, and the log is compacted."""
    compaction = {"br": {"cluster": "basic"}, "s3": S3 | {"prefix": "log"}}
    world.schedule(
        maxBackups=1, logBackupTemplate=LOG, compactBackupTemplate=compaction, compactInterval="1h", pause=True
    )
    world.change(pause=False, maxBackups=None)
    world.nights(2)
    world.world.advance(23 * HOUR)
    world.admin.patch(BACKUP_SCHEDULES, "nightly", "lab", {"spec": {"maxBackups": 1}})


def settled(world: SchedulesWorld) -> None:
    """A process without faults continues, and the backup of the third night ends."""
    world.restart()
    world.pass_time(60)
    assert ["log-nightly", *NIGHTS[1:3]] == world.backups()
    world.complete(NIGHTS[2])
    world.pass_time(60)
    assert ["log-nightly", NIGHTS[2]] == world.backups()
    assert NIGHTS[2] == world.of()["lastBackup"]
    assert 1 == world.created(NIGHTS[2])


@pytest.fixture
def night(world: SchedulesWorld) -> SchedulesWorld:
    """The moment before a night with all that there is to do."""
    third_night(world)
    return world


@pytest.mark.rule("R06")
@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 7))
def test_a_new_process_continues_after_a_crash_at_any_write(night: SchedulesWorld, at: int, *, after: bool) -> None:
    life_of(night, at, Killed(), after=after)
    with pytest.raises(Killed):
        night.pass_time(1)
    settled(night)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 7))
def test_an_answer_that_is_lost_changes_nothing(night: SchedulesWorld, at: int) -> None:
    made = life_of(night, at, RequestTimeout("PATCH", "/", "lost"), after=True, once=True)
    night.pass_time(1)
    night.pass_time(60)
    assert max(each.writes for each in made) >= at
    settled(night)


def blind_to_backups(world: SchedulesWorld) -> None:
    world.operator.caches[BACKUPS].blind = True


def blind_to_schedules(world: SchedulesWorld) -> None:
    world.operator.caches[BACKUP_SCHEDULES].blind = True


def cut(world: SchedulesWorld) -> None:
    for cache in world.operator.caches.values():
        cache.cut()


def emptied(world: SchedulesWorld) -> None:
    world.operator.caches[BACKUPS].empty()


@pytest.mark.slow
@pytest.mark.parametrize("view", [blind_to_backups, blind_to_schedules, cut, emptied])
def test_a_stale_view_makes_no_second_backup_and_removes_none(
    night: SchedulesWorld, view: Callable[[SchedulesWorld], None]
) -> None:
    night.operator.work()
    view(night)
    for _ in range(3):
        night.pass_time(40)
    assert NIGHTS[1] in night.backups()
    assert night.created(NIGHTS[2]) <= 1
    settled(night)


def test_a_group_missing_from_the_cache_is_found_by_a_live_read(world: SchedulesWorld) -> None:
    group = {"tidb.pingcap.com/backup-schedule-group": "shared"}
    world.schedule("one", labels=group)
    world.schedule("two", labels=group, schedule="1 3 * * *")
    world.operator.caches[BACKUPS].blind = True
    world.pass_time(3 * HOUR)
    world.pass_time(60)
    assert ["one-2026-01-01t03-00-00"] == world.backups()
