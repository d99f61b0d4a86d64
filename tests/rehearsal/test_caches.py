"""The caches of a rehearsed operator."""

from kube.client import Client
from kube.objects import Json
from kube.resources import CONFIG_MAPS
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.caches import Caches
from sandbox.apiserver import ApiServer, InProcessTransport, selectors

_OURS = {"team": "ours"}


def config_map(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}}


def test_a_list_shows_the_changes_since_the_last_one() -> None:
    server = ApiServer(FakeClock(), SeededRandomness(1))
    admin = Client(InProcessTransport(server))
    cache = Caches(server, selectors.parse("", "", ())).informer_for(CONFIG_MAPS)

    def ours() -> list[str]:
        cache.look()
        return [each.metadata.name for each in cache.list("default", _OURS)]

    admin.create(CONFIG_MAPS, config_map("a", **_OURS), "default")
    assert ["a"] == ours()
    admin.create(CONFIG_MAPS, config_map("b", **_OURS), "default")
    assert ["a", "b"] == ours()
    admin.patch(CONFIG_MAPS, "a", "default", {"metadata": {"labels": {"team": "theirs"}}})
    assert ["b"] == ours()
    admin.delete(CONFIG_MAPS, "b", "default")
    assert [] == ours()
    admin.create(CONFIG_MAPS, config_map("c", **_OURS), "default")
    cache.cut()
    assert ["c"] == ours()


def test_a_reader_may_change_the_list_that_it_gets() -> None:
    server = ApiServer(FakeClock(), SeededRandomness(1))
    cache = Caches(server, selectors.parse("", "", ())).informer_for(CONFIG_MAPS)
    Client(InProcessTransport(server)).create(CONFIG_MAPS, config_map("a"), "default")
    cache.look()
    cache.list("default").clear()
    assert 1 == len(cache.list("default"))
