"""Everything below a prefix is deleted in spite of failures and interruptions (backup.md 7.8)."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from backup_manager.storage.deletion import Deleted, Interrupted, Pace, delete_all, is_empty
from backup_manager.storage.errors import AccessDenied, BadLocation, StorageError
from backup_manager.storage.location import Kind, Location
from backup_manager.storage.objects import open_storage
from ports.clock import FakeClock
from ports.stopping import Stop
from tests.backup_manager.storage.conftest import Place
from tests.backup_manager.storage.fakes import WHERE, Memory, failing
from tests.backup_manager.storage.servers import S3

ROOT = Path(__file__).parents[3]


def clean(storage: Memory, pace: Pace | None = None, told: list[Deleted] | None = None) -> Deleted:
    pace = pace or Pace(page=30, at_once=3)
    told = [] if told is None else told
    return delete_all(storage, pace, FakeClock(), Stop(), told.append)


def objects(count: int) -> dict[str, bytes]:
    return {f"{number:05}.sst": b"x" * 2 for number in range(count)}


@pytest.mark.rule("backup-7.8")
def test_deletes_all_objects_and_reports_number_and_bytes() -> None:
    storage = Memory(objects(95))
    told: list[Deleted] = []
    assert Deleted(95, 190) == clean(storage, told=told)
    assert {} == storage.objects
    assert [10, 20, 30] == [each.objects for each in told[:3]]
    assert Deleted(95, 190) == told[-1]


@pytest.mark.rule("backup-7.8")
def test_refuses_an_empty_prefix() -> None:
    storage = Memory(objects(3))
    storage.location = replace(WHERE, prefix="")
    with pytest.raises(BadLocation, match=r"the prefix is empty, .*; set spec\.s3\.prefix"):
        clean(storage)
    assert [] == storage.calls


@pytest.mark.rule("backup-7.8")
def test_retries_a_failed_batch_in_the_next_round() -> None:
    storage = Memory(objects(95), failing("delete", 2, 5))
    assert 95 == clean(storage).objects
    assert {} == storage.objects


@pytest.mark.rule("backup-7.8")
def test_restarts_a_broken_list() -> None:
    storage = Memory(objects(20), failing("list", 1))
    assert 20 == clean(storage).objects


@pytest.mark.rule("backup-7.8")
def test_a_rest_after_all_rounds_is_an_error_with_the_last_cause() -> None:
    storage = Memory(objects(20), failing("delete"))
    with pytest.raises(StorageError, match=r"objects are left after 4 rounds; the last error was: .*status 503"):
        clean(storage, Pace(rounds=4))
    assert 4 * 2 == storage.calls.count("delete")


@pytest.mark.rule("backup-7.8")
def test_deletes_concurrently_added_objects_in_the_next_round() -> None:
    storage = Memory(objects(20))
    late = iter(["late"])

    def add_one(verb: str) -> None:
        if verb == "delete" and (key := next(late, None)):
            storage.objects[key] = b""

    storage.fail = add_one
    assert 21 == clean(storage).objects
    assert {} == storage.objects


def test_a_permanent_error_ends_the_deletion() -> None:
    denied = AccessDenied("delete from", WHERE, "status 403")
    storage = Memory(objects(1000), failing("delete", error=denied))
    with pytest.raises(AccessDenied):
        clean(storage)
    assert storage.calls.count("delete") <= 4
    assert 1 == storage.calls.count("list")


def test_limits_concurrent_batches() -> None:
    most, now = 0, 0
    lock = threading.Lock()

    def count(verb: str) -> None:
        nonlocal most, now
        if verb == "delete":
            with lock:
                now += 1
                most = max(most, now)
            threading.Event().wait(0.001)
            with lock:
                now -= 1

    clean(Memory(objects(500), count), Pace(at_once=4))
    assert 2 <= most <= 4


def test_another_run_continues_after_a_stop() -> None:
    storage, stop = Memory(objects(200)), Stop()
    told: list[Deleted] = []

    def on_progress(done: Deleted) -> None:
        told.append(done)
        if len(told) == 3:
            threading.Thread(target=stop.set).start()
            stop.wait(FakeClock())

    with pytest.raises(Interrupted):
        delete_all(storage, Pace(at_once=2), FakeClock(), stop, on_progress)
    left = len(storage.objects)
    assert 0 < left < 200
    assert left == clean(storage).objects


class Waits(FakeClock):
    """A clock that advances by each wait, and records it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        assert timeout is not None
        self.seconds.append(round(timeout, 3))
        self.step(timeout)


@pytest.mark.rule("backup-7.8")
def test_with_backoff_pauses_after_a_page_with_failures() -> None:
    clock = Waits()
    storage = Memory(objects(120), failing("delete", 1, 2, 3, 4, 5, 8))
    pace = Pace(page=10, at_once=1, pause_on_failure=True)
    assert 120 == delete_all(storage, pace, clock, Stop(), lambda _done: None).objects
    # a failure is noticed during the next page; a page without failures resets the pause
    assert [0.1, 0.2, 0.4, 0.8, 1.0, 0.1] == clock.seconds


@pytest.mark.slow
@pytest.mark.parametrize("bulk", [True, False])
def test_every_provider_deletes_only_below_the_prefix(place: Place, bulk: bool) -> None:
    for number in range(60):
        place.put(f"{number % 7}/{number}.sst", b"x" * number)
    place.server.put(place.bucket, "some/prefix2/other", b"not ours")
    storage = place.storage(bulk=bulk)
    done = delete_all(storage, Pace(page=25, at_once=4), FakeClock(), Stop(), lambda _done: None)
    assert Deleted(60, sum(range(60))) == done
    assert is_empty(storage)
    others = open_storage(replace(place.location, prefix="some/prefix2"), place.server.environ)
    assert b"not ours" == others.read("other")


@pytest.mark.slow
def test_links_on_a_volume_are_not_followed(tmp_path: Path) -> None:
    volume, elsewhere = tmp_path / "volume", tmp_path / "elsewhere"
    for path in (volume / "prefix" / "1", elsewhere):
        path.mkdir(parents=True)
        (path / "file").write_text("content")
    (volume / "prefix" / "link").symlink_to(elsewhere)
    storage = open_storage(Location(Kind.LOCAL, str(volume), "prefix"), {})
    assert 1 == delete_all(storage, Pace(), FakeClock(), Stop(), lambda _done: None).objects
    assert "content" == (elsewhere / "file").read_text()
    assert not (volume / "prefix" / "1" / "file").exists()


@pytest.mark.slow
def test_reports_a_circular_link_and_deletes_nothing_beyond_it(tmp_path: Path) -> None:
    (tmp_path / "prefix").mkdir()
    (tmp_path / "other").touch()
    (tmp_path / "prefix" / "up").symlink_to(tmp_path)
    storage = open_storage(Location(Kind.LOCAL, str(tmp_path), "prefix"), {})
    with pytest.raises(StorageError, match="loop"):
        delete_all(storage, Pace(rounds=2), FakeClock(), Stop(), lambda _done: None)
    assert (tmp_path / "other").exists()


KILLED = """
import sys
from backup_manager.storage.deletion import Pace, delete_all
from backup_manager.storage.location import Kind, Location
from backup_manager.storage.objects import open_storage
from ports.clock import SystemClock
from ports.stopping import Stop

storage = open_storage(Location(Kind.LOCAL, sys.argv[1], "prefix"), {})
delete_all(storage, Pace(page=100, at_once=1), SystemClock(), Stop(), lambda done: print(done.objects, flush=True))
"""


@pytest.mark.slow
def test_after_kill_9_the_next_run_deletes_the_rest(tmp_path: Path) -> None:
    directory = tmp_path / "prefix"
    directory.mkdir()
    for number in range(20_000):
        (directory / f"{number}.sst").touch()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    with process.stdout as told:
        while int(next(told)) < 1000:
            pass
        process.kill()
    process.wait()
    left = sum(1 for _ in directory.iterdir())
    assert 0 < left <= 19_000
    storage = open_storage(Location(Kind.LOCAL, str(tmp_path), "prefix"), {})
    done = delete_all(storage, Pace(), FakeClock(), Stop(), lambda _done: None)
    assert left == done.objects
    assert is_empty(storage)


@pytest.mark.slow
def test_reports_a_service_that_disappears(s3: S3) -> None:
    gone = replace(s3.location("bucket"), endpoint="http://127.0.0.1:1")
    with pytest.raises(StorageError, match=r"the last error was: cannot list .*no answer"):
        delete_all(open_storage(gone, s3.environ), Pace(rounds=1), FakeClock(), Stop(), lambda _done: None)
