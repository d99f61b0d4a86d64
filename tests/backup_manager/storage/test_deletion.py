"""Everything below a prefix goes, whatever fails or ends it meanwhile (backup.md 7.8)."""

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


def test_7_8_all_objects_go_and_progress_tells_how_many_and_their_bytes() -> None:
    storage = Memory(objects(95))
    told: list[Deleted] = []
    assert Deleted(95, 190) == clean(storage, told=told)
    assert {} == storage.objects
    assert [10, 20, 30] == [each.objects for each in told[:3]]
    assert Deleted(95, 190) == told[-1]


def test_7_8_an_empty_prefix_is_refused_since_it_means_the_whole_bucket() -> None:
    storage = Memory(objects(3))
    storage.location = replace(WHERE, prefix="")
    with pytest.raises(BadLocation, match=r"the prefix is empty, .*; set spec\.s3\.prefix"):
        clean(storage)
    assert [] == storage.calls


def test_7_8_a_batch_that_fails_is_tried_again_in_the_next_round() -> None:
    storage = Memory(objects(95), failing("delete", 2, 5))
    assert 95 == clean(storage).objects
    assert {} == storage.objects


def test_7_8_a_list_that_breaks_off_is_begun_again() -> None:
    storage = Memory(objects(20), failing("list", 1))
    assert 20 == clean(storage).objects


def test_7_8_what_is_left_after_all_rounds_is_an_error_with_the_last_cause() -> None:
    storage = Memory(objects(20), failing("delete"))
    with pytest.raises(StorageError, match=r"objects are left after 4 rounds; the last error was: .*status 503"):
        clean(storage, Pace(rounds=4))
    assert 4 * 2 == storage.calls.count("delete")


def test_7_8_objects_that_others_put_there_meanwhile_go_in_the_next_round() -> None:
    storage = Memory(objects(20))
    late = iter(["late"])

    def add_one(verb: str) -> None:
        if verb == "delete" and (key := next(late, None)):
            storage.objects[key] = b""

    storage.fail = add_one
    assert 21 == clean(storage).objects
    assert {} == storage.objects


def test_what_will_not_pass_ends_it_at_once() -> None:
    denied = AccessDenied("delete from", WHERE, "status 403")
    storage = Memory(objects(1000), failing("delete", error=denied))
    with pytest.raises(AccessDenied):
        clean(storage)
    assert storage.calls.count("delete") <= 4
    assert 1 == storage.calls.count("list")


def test_no_more_batches_are_under_way_than_allowed() -> None:
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


def test_a_stop_ends_it_and_another_run_goes_on() -> None:
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
    """Passes the time that somebody waits for, and notes it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        assert timeout is not None
        self.seconds.append(round(timeout, 3))
        self.step(timeout)


def test_7_8_with_backoff_a_page_with_failures_is_waited_after() -> None:
    clock = Waits()
    storage = Memory(objects(120), failing("delete", 1, 2, 3, 4, 5, 8))
    pace = Pace(page=10, at_once=1, pause_on_failure=True)
    assert 120 == delete_all(storage, pace, clock, Stop(), lambda _done: None).objects
    # a failure is seen when the next page is under way; a clean page begins anew
    assert [0.1, 0.2, 0.4, 0.8, 1.0, 0.1] == clock.seconds


@pytest.mark.slow
@pytest.mark.parametrize("bulk", [True, False])
def test_every_provider_is_emptied_below_the_prefix_alone(place: Place, bulk: bool) -> None:
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
def test_a_link_that_leads_back_is_told_and_nothing_beyond_it_goes(tmp_path: Path) -> None:
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
def test_after_kill_9_the_next_run_goes_on_with_what_is_left(tmp_path: Path) -> None:
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
def test_a_service_that_goes_away_is_reported_and_nothing_is_said_to_be_done(s3: S3) -> None:
    gone = replace(s3.location("bucket"), endpoint="http://127.0.0.1:1")
    with pytest.raises(StorageError, match=r"the last error was: cannot list .*no answer"):
        delete_all(open_storage(gone, s3.environ), Pace(rounds=1), FakeClock(), Stop(), lambda _done: None)
