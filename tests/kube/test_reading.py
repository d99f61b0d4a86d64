"""Recorded answers stay valid while the caches are unchanged or give the same answers (design.md 3.8)."""

from collections.abc import Mapping

import pytest

from kube.objects import Object
from kube.reading import IndexFunc, NotedLister, Readings
from tests.informers.support import pod_object


class Cache:
    """A lister that counts its reads."""

    def __init__(self) -> None:
        self.items = [pod_object("a"), pod_object("b")]
        self.changes = 0
        self.asked = 0

    def get(self, namespace: str, name: str) -> Object | None:
        self.asked += 1
        return next((item for item in self.items if item.key == f"{namespace}/{name}"), None)

    def by_index(self, function: IndexFunc, value: str) -> list[Object]:
        self.asked += 1
        return [item for item in self.items if value in function(item)]

    def list(self, namespace: str = "", labels: Mapping[str, str] | None = None) -> list[Object]:
        self.asked += 1
        return list(self.items)


def by_name(item: Object) -> list[str]:
    return [item.metadata.name]


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def readings(cache: Cache) -> Readings:
    readings = Readings()
    through = NotedLister(cache, readings)
    through.get("ns", "a")
    through.list("ns")
    through.by_index(by_name, "b")
    cache.asked = 0
    return readings


@pytest.mark.rule("design-3.8")
def test_does_not_read_an_unchanged_cache_again(cache: Cache, readings: Readings) -> None:
    assert readings.still_hold()
    assert 0 == cache.asked


@pytest.mark.rule("design-3.8")
def test_reads_a_changed_cache_once(cache: Cache, readings: Readings) -> None:
    cache.changes += 1
    assert readings.still_hold()
    assert 3 == cache.asked
    assert readings.still_hold()
    assert 3 == cache.asked


@pytest.mark.rule("design-3.8")
def test_another_object_invalidates_the_answers_for_good(cache: Cache, readings: Readings) -> None:
    cache.items[0], cache.changes = pod_object("a", version="2"), 1
    assert [False, False] == [readings.still_hold(), readings.still_hold()]


@pytest.mark.rule("design-3.8")
def test_notices_a_change_between_two_reads(cache: Cache) -> None:
    readings = Readings()
    through = NotedLister(cache, readings)
    through.get("ns", "a")
    cache.items[0], cache.changes = pod_object("a", version="2"), 1
    through.get("ns", "b")
    assert not readings.still_hold()


@pytest.mark.rule("design-3.8")
def test_two_answers_to_one_read_are_never_valid(cache: Cache) -> None:
    readings = Readings()
    through = NotedLister(cache, readings)
    first = through.get("ns", "a")
    cache.items[0], cache.changes = pod_object("a", version="2"), 1
    assert first is not through.get("ns", "a")
    assert not readings.still_hold()
