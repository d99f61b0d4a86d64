"""Writes of this process that the cache has not seen yet (F6)."""

from collections.abc import Callable

import msgspec
import pytest

from controllers.errors import RequeueError
from controllers.own_write import OwnWrite
from kube.objects import Object
from kube.resources import BACKUPS
from ports.clock import FakeClock
from ports.transport import RequestTimeout
from tests.controllers.backup.backups_world import BackupsWorld


def version(number: str, uid: str = "u") -> Object:
    meta = {"name": "basic", "namespace": "ns", "uid": uid, "resourceVersion": number}
    return Object(msgspec.json.encode({"metadata": meta}))


def unread() -> Object | None:
    raise AssertionError("idle costs no read, nor does a cache that lags for a moment")


def written(number: str) -> OwnWrite:
    write = OwnWrite()
    write.remember(version(number))
    return write


def waits(write: OwnWrite, cached: Object, clock: FakeClock, look: Callable[[], Object | None] = unread) -> bool:
    return write.wait(cached, clock, look) > 0


@pytest.mark.rule("F6")
def test_older_than_the_own_write_is_not_acted_on(clock: FakeClock) -> None:
    write = OwnWrite()
    assert not waits(write, version("5"), clock)
    write.remember(version("10"))
    assert waits(write, version("9"), clock), "compared as numbers"
    assert not waits(write, version("10"), clock)
    assert not waits(write, version("9"), clock), "once seen, nothing is expected any more"


@pytest.mark.rule("F6")
def test_another_object_of_the_name_is_no_older_state(clock: FakeClock) -> None:
    assert not waits(written("10"), version("9", uid="other"), clock)


@pytest.mark.rule("F6")
def test_a_version_that_is_no_number_compares_with_nothing(clock: FakeClock) -> None:
    write = written("10")
    assert not waits(write, version("abc"), clock)
    write.remember(version("abc"))
    assert not waits(write, version("1"), clock)


@pytest.mark.rule("F6")
def test_tries_become_fewer_while_the_cache_lags(clock: FakeClock) -> None:
    write = written("10")
    pauses = []
    while clock.now() < 600.0:
        pauses.append(write.wait(version("9"), clock, lambda: version("10")))
        clock.step(pauses[-1])
    assert (0.1, 30.0) == (pauses[0], pauses[-1])
    assert sorted(pauses) == pauses
    assert 90 > len(pauses)


@pytest.mark.rule("F6")
def test_a_live_read_shows_that_versions_have_gone_back(clock: FakeClock) -> None:
    """As after a restore of etcd from a backup; the cache shows the newest state."""
    write = written("100")
    assert waits(write, version("9"), clock)
    clock.step(29.0)
    assert waits(write, version("9"), clock)
    clock.step(1.0)
    assert waits(write, version("9"), clock, lambda: version("100")), "the cache does lag"
    assert waits(write, version("9"), clock, lambda: version("11")), "it has not seen what there is now"
    assert waits(write, version("9"), clock, lambda: version("9", uid="other"))
    assert waits(write, version("9"), clock, lambda: None)
    assert not waits(write, version("9"), clock, lambda: version("9"))
    assert not waits(write, version("9"), clock), "nothing is expected any more"


@pytest.mark.rule("F6")
def test_a_live_read_that_fails_is_tried_again(clock: FakeClock) -> None:
    write = written("10")
    assert waits(write, version("9"), clock)
    clock.step(30.0)

    def fail() -> Object | None:
        raise RequestTimeout("GET", "/", "silent")

    with pytest.raises(RequeueError, match="could not see whether the cache lags behind: GET /: silent"):
        write.wait(version("9"), clock, fail)


@pytest.mark.slow
@pytest.mark.rule("F6")
def test_a_backup_continues_after_etcd_was_restored() -> None:
    world = BackupsWorld()
    world.add(backoffRetryPolicy={"maxRetryTimes": 0})
    storage, cache = world.world.server.storage, world.operator.caches[BACKUPS]
    snapshot = storage.snapshot()
    cache.blind = True
    world.end()
    assert "Failed" == world.phase()

    storage.restore(snapshot, versions_go_back=True)
    cache.blind = False
    for each in world.operator.caches.values():
        each.cut()
    world.end()
    world.run(90.0)
    assert "Failed" == world.phase()
    world.stop()
