import pytest

from informers.deltas import Added, Batch, Bookmark, Deleted, ReplacedAll, SyncAll, Updated
from informers.notifications import Add, Delete, Update
from informers.shared_informer import apply_delta
from informers.store import Store
from informers.tombstones import DeletedFinalStateUnknown
from tests.informers.support import pod_object

OLD, NEW = pod_object("a", "1"), pod_object("a", "2")
OTHER = pod_object("b", "1")


@pytest.fixture
def store() -> Store:
    store = Store()
    store.add(OLD)
    return store


@pytest.mark.rule("FIFO-20")
def test_the_store_decides_whether_an_event_is_an_addition(store: Store) -> None:
    assert [Update(OLD, NEW)] == apply_delta(store, Added(NEW), False)
    assert [Add(OTHER, True)] == apply_delta(store, Updated(OTHER), True)
    assert (NEW, OTHER) == (store.get(OLD), store.get(OTHER))


@pytest.mark.rule("FIFO-21")
def test_a_deletion_brings_the_last_state(store: Store) -> None:
    assert [Delete(NEW)] == apply_delta(store, Deleted(NEW), False)
    assert [] == store.list()
    assert store.last_resource_version == "2"


@pytest.mark.rule("FIFO-7")
def test_the_deletion_of_an_unknown_object_notifies_no_handler(store: Store) -> None:
    assert [] == apply_delta(store, Deleted(OTHER), False)


@pytest.mark.rule("FIFO-8", "FIFO-22")
def test_a_list_applies_its_deletions_first_and_then_its_items_in_order(store: Store) -> None:
    store.add(OTHER)
    third = pod_object("c", "3")
    told = apply_delta(store, ReplacedAll((third, NEW), "9"), False)
    assert [Delete(DeletedFinalStateUnknown("ns/b", OTHER)), Add(third, False), Update(OLD, NEW)] == told
    assert ["ns/c", "ns/a"] == store.list_keys()
    assert store.last_resource_version == "9"


@pytest.mark.rule("FIFO-9")
def test_a_resync_repeats_every_stored_object(store: Store) -> None:
    store.add(OTHER)
    assert [Update(OLD, OLD), Update(OTHER, OTHER)] == apply_delta(store, SyncAll(), False)


@pytest.mark.rule("FIFO-23")
def test_a_bookmark_moves_the_version_only(store: Store) -> None:
    assert [] == apply_delta(store, Bookmark("5"), False)
    assert ([OLD], "5") == (store.list(), store.last_resource_version)


@pytest.mark.rule("FIFO-11")
def test_notifications_of_a_batch_keep_its_order(store: Store) -> None:
    unknown = pod_object("c", "5")
    told = apply_delta(store, Batch((Added(OTHER), Updated(NEW), Deleted(unknown))), False)
    assert [Add(OTHER, False), Update(OLD, NEW)] == told
    assert {"ns/a", "ns/b"} == set(store.list_keys())
    assert store.last_resource_version == "5"
