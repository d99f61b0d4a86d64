import pytest

from informers.mutation_cache import MutationCache
from informers.store import Store
from ports.clock import FakeClock
from tests.informers.support import pod_object


@pytest.fixture
def store() -> Store:
    store = Store()
    store.add(pod_object("a", "9"))
    return store


def test_MUT_3_the_newer_of_both_is_read(store: Store, clock: FakeClock) -> None:
    cache = MutationCache(store.get_by_key, clock, 60)
    cached, written = store.get_by_key("ns/a"), pod_object("a", "10")
    assert cached is cache.get("ns/a")
    cache.mutated(written)
    assert written is cache.get("ns/a")
    caught_up = pod_object("a", "010")
    store.add(caught_up)
    assert caught_up is cache.get("ns/a")


@pytest.mark.parametrize("version", ["", "8", "9", "x10"])
def test_MUT_3_what_is_not_newer_is_not_kept(store: Store, clock: FakeClock, version: str) -> None:
    cache = MutationCache(store.get_by_key, clock, 60)
    cache.mutated(pod_object("a", version))
    assert store.get_by_key("ns/a") is cache.get("ns/a")


def test_MUT_3_a_write_is_forgotten_after_its_time(store: Store, clock: FakeClock) -> None:
    cache = MutationCache(store.get_by_key, clock, 60)
    cache.mutated(pod_object("a", "10"))
    clock.step(60)
    assert store.get_by_key("ns/a") is cache.get("ns/a")


@pytest.mark.parametrize("include_adds", [True, False])
def test_MUT_3_what_the_cache_lacks_is_found_if_wanted(store: Store, clock: FakeClock, include_adds: bool) -> None:
    cache = MutationCache(store.get_by_key, clock, 60, include_adds=include_adds)
    created = pod_object("b", "10")
    cache.mutated(created)
    assert (created if include_adds else None) is cache.get("ns/b")
    assert None is cache.get("ns/c")


def test_MUT_3_the_last_hundred_writes_are_kept(store: Store, clock: FakeClock) -> None:
    cache = MutationCache(store.get_by_key, clock, 60, include_adds=True)
    for number in range(100):
        cache.mutated(pod_object(f"p{number}"))
    assert cache.get("ns/p0") is not None, "and is the last one used now"
    cache.mutated(pod_object("one-more"))
    assert [True, False, True] == [cache.get(f"ns/{name}") is not None for name in ("p0", "p1", "one-more")]
