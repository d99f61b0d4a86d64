"""The substitute for the informers shows the same as a watch, or less during a fault."""

import pytest

from informers.handlers import ResourceEventHandlerFuncs
from kube.client import Client
from kube.objects import Json
from kube.resources import CONFIG_MAPS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.caches import Cache
from sandbox.apiserver import ApiServer, InProcessTransport
from sandbox.apiserver.selectors import everything


class _Watched:
    """A server, a client that writes, and a handler's notifications."""

    def __init__(self, at: int | None = None) -> None:
        self.server = ApiServer(FakeClock(), SeededRandomness(1))
        self.client = Client(InProcessTransport(self.server))
        self.notified: list[str] = []

    def cache(self, at: int | None = None) -> Cache:
        """An informer whose handler records its notifications."""
        cache = Cache(self.server, CONFIG_MAPS, everything, at)
        cache.add_event_handler(
            ResourceEventHandlerFuncs(
                on_add=lambda new: self.notified.append(f"add {new.metadata.name}"),
                on_update=lambda _, new: self.notified.append(f"update {new.metadata.name}"),
                on_delete=lambda _: self.notified.append("delete"),
            )
        )
        cache.look()
        self.notified.clear()
        return cache

    def write(self, name: str) -> None:
        """Create, change and delete."""
        body: Json = {"metadata": {"name": name}}
        self.client.create(CONFIG_MAPS, body, "default")
        self.client.patch(CONFIG_MAPS, name, "default", {"data": {"a": "b"}})
        self.client.delete(CONFIG_MAPS, name, "default")


@pytest.fixture
def watched() -> _Watched:
    return _Watched()


def test_a_cache_notifies_its_handler_of_every_change(watched: _Watched) -> None:
    cache = watched.cache()
    watched.write("a")
    cache.look()

    assert ["add a", "update a", "delete"] == watched.notified


@pytest.mark.rule("FP2")
def test_a_stale_cache_catches_up_one_change_at_a_time(watched: _Watched) -> None:
    cache = watched.cache()
    cache.blind = True
    watched.write("a")
    cache.look()
    assert [] == watched.notified

    cache.blind = False
    cache.look()
    assert ["add a", "update a", "delete"] == watched.notified


@pytest.mark.rule("FP3")
def test_an_object_created_and_deleted_while_the_watch_is_lost_is_never_seen(watched: _Watched) -> None:
    cache = watched.cache()
    watched.write("a")
    watched.client.create(CONFIG_MAPS, {"metadata": {"name": "b"}}, "default")
    cache.cut()
    cache.look()

    assert ["add b"] == watched.notified


@pytest.mark.rule("FP2")
def test_a_restarted_cache_may_begin_at_an_older_version(watched: _Watched) -> None:
    before = watched.server.storage.version
    watched.client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
    cache = watched.cache(at=before)
    assert cache.get("default", "a") is None

    cache.look()
    assert ["add a"] == watched.notified


@pytest.mark.rule("FP12")
def test_a_cache_relists_after_the_server_compacts_its_history(watched: _Watched) -> None:
    cache = watched.cache()
    watched.client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, "default")
    watched.server.storage.compact()
    cache.look()

    assert ["add a"] == watched.notified
