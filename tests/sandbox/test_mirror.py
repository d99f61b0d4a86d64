"""The mirror survives faults of watches."""

from collections.abc import Callable, Iterator

import pytest

from kube.client import Client
from kube.objects import Json
from kube.resources import CONFIG_MAPS
from ports.clock import SystemClock
from ports.randomness import SeededRandomness
from ports.stopping import Stop
from sandbox.apiserver import ApiServer, InProcessTransport
from sandbox.mirror import Mirror
from sandbox.notifier import Notifier

_DEADLINE = 5.0


@pytest.fixture
def server() -> ApiServer:
    return ApiServer(SystemClock(), SeededRandomness(1), window=5)


@pytest.fixture
def client(server: ApiServer) -> Client:
    return Client(InProcessTransport(server))


@pytest.fixture
def notifier() -> Notifier:
    return Notifier(SystemClock())


@pytest.fixture
def mirror(server: ApiServer, client: Client, notifier: Notifier) -> Iterator[Mirror]:
    """A mirror in threads."""
    made, stop = Mirror(client, (CONFIG_MAPS,), SystemClock(), notifier), Stop()
    made.start(stop)
    made.wait_for_sync(_DEADLINE)
    yield made
    stop.set()
    server.disconnect()
    made.join()


def config_map(name: str, value: str = "1") -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"key": value}}


def wait_until(notifier: Notifier, holds: Callable[[], bool]) -> None:
    clock, stop = SystemClock(), Stop()
    end = clock.now() + _DEADLINE
    while not holds():
        seen = notifier.count((CONFIG_MAPS,))
        if holds():
            return
        assert clock.now() < end, "not seen in time"
        notifier.wait((CONFIG_MAPS,), seen, end, stop)


def names(mirror: Mirror) -> list[str]:
    return [tree["metadata"]["name"] for tree in mirror.list(CONFIG_MAPS, "default")]


def test_a_mirror_follows_changes_and_deletions(client: Client, mirror: Mirror, notifier: Notifier) -> None:
    client.create(CONFIG_MAPS, config_map("a"), "default")
    client.create(CONFIG_MAPS, config_map("b"), "default")
    client.patch(CONFIG_MAPS, "a", "default", {"data": {"key": "2"}})
    client.delete(CONFIG_MAPS, "b", "default")

    wait_until(notifier, lambda: names(mirror) == ["a"])
    found = mirror.get(CONFIG_MAPS, "default", "a")
    assert found is not None
    wait_until(notifier, lambda: (mirror.get(CONFIG_MAPS, "default", "a") or {})["data"] == {"key": "2"})


@pytest.mark.slow
def test_a_mirror_recovers_from_disconnects_and_lost_history(
    server: ApiServer, client: Client, mirror: Mirror, notifier: Notifier
) -> None:
    server.disconnect()
    for index in range(20):
        client.create(CONFIG_MAPS, config_map(f"c-{index:02}"), "default")

    wait_until(notifier, lambda: len(names(mirror)) == 20)


def test_an_own_write_never_revives_a_deleted_object(client: Client, notifier: Notifier) -> None:
    mirror = Mirror(client, (CONFIG_MAPS,), SystemClock(), notifier)
    created = client.create(CONFIG_MAPS, config_map("a"), "default")
    mirror.poll()
    client.delete(CONFIG_MAPS, "a", "default")
    mirror.poll()

    mirror.observe(CONFIG_MAPS, created)

    assert [] == names(mirror)


def test_a_mirror_that_reads_the_history_lists_once(server: ApiServer, client: Client, notifier: Notifier) -> None:
    mirror = Mirror(client, (CONFIG_MAPS,), SystemClock(), notifier)
    client.create(CONFIG_MAPS, config_map("a"), "default")
    mirror.poll(server.storage)
    client.create(CONFIG_MAPS, config_map("b"), "default")
    client.delete(CONFIG_MAPS, "a", "default")
    client.create(CONFIG_MAPS, config_map("a", "2"), "default")
    client.delete(CONFIG_MAPS, "b", "default")
    mirror.poll(server.storage)

    assert client.get(CONFIG_MAPS, "a", "default").decode() == mirror.get(CONFIG_MAPS, "default", "a")
    assert ["a"] == names(mirror)
    assert 1 == server.audit.count(verb="list")


def test_a_mirror_notices_that_the_history_has_gone_back(server: ApiServer, client: Client, notifier: Notifier) -> None:
    mirror, before = Mirror(client, (CONFIG_MAPS,), SystemClock(), notifier), server.snapshot()
    for index in range(3):
        client.create(CONFIG_MAPS, config_map(f"lost-{index}"), "default")
    mirror.poll(server.storage)
    server.storage.restore(before, versions_go_back=True)
    for index in range(5):
        client.create(CONFIG_MAPS, config_map(f"new-{index}"), "default")
    mirror.poll(server.storage)

    assert [f"new-{index}" for index in range(5)] == names(mirror)


def test_a_mirror_lists_after_more_changes_than_the_history_has(
    server: ApiServer, client: Client, notifier: Notifier
) -> None:
    mirror = Mirror(client, (CONFIG_MAPS,), SystemClock(), notifier)
    mirror.poll(server.storage)
    for index in range(20):
        client.create(CONFIG_MAPS, config_map(f"c-{index:02}"), "default")
    mirror.poll(server.storage)

    assert 20 == len(names(mirror))
