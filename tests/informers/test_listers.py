import pytest

from informers.index import DEFAULT_INDEXERS
from informers.listers import StoreLister
from informers.selectors import NOTHING, parse_selector
from informers.store import Store
from kube.objects import Object
from kube.reading import Lister
from kube.resources import PODS
from ports.clock import FakeClock
from tests.informers.fake_source import FakeSource, pod
from tests.informers.support import as_object, informer_of, pod_object

INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"


@pytest.fixture
def store() -> Store:
    store = Store(DEFAULT_INDEXERS)
    store.add(pod_object("a", **{INSTANCE: "db", COMPONENT: "pd"}))
    store.add(pod_object("b", **{INSTANCE: "db", COMPONENT: "tikv"}))
    store.add(pod_object("c", namespace="other", **{INSTANCE: "db", COMPONENT: "pd"}))
    return store


@pytest.fixture
def lister(store: Store) -> StoreLister:
    return StoreLister(store, PODS)


def names(objects: list[Object]) -> list[str]:
    return sorted(obj.metadata.name for obj in objects)


@pytest.mark.rule("LST-1")
def test_lists_of_all_of_a_namespace_and_of_a_selector(lister: StoreLister) -> None:
    assert ["a", "b", "c"] == names(lister.list())
    assert ["a", "b"] == names(lister.list("ns"))
    assert ["a", "c"] == names(lister.list(labels={COMPONENT: "pd"}))
    assert ["b"] == names(lister.select(parse_selector(f"{COMPONENT} in (tikv,tidb)"), "ns"))
    assert [] == lister.select(NOTHING)


@pytest.mark.rule("LST-1")
def test_without_the_namespace_index_the_lister_reads_every_object(store: Store) -> None:
    plain = Store()
    plain.replace(store.list(), "1")
    assert ["a", "b"] == names(StoreLister(plain, PODS).list("ns"))
    assert ["b"] == names(StoreLister(plain, PODS).list("ns", {INSTANCE: "db", COMPONENT: "tikv"}))


@pytest.mark.rule("LST-2")
def test_get_knows_both_scopes_and_answers_none(store: Store, lister: StoreLister) -> None:
    node = pod_object("node", namespace="")
    store.add(node)
    assert node is lister.get("", "node")
    assert lister.get("ns", "c") is None


@pytest.mark.rule("LST-6")
def test_the_objects_of_an_instance_are_found_by_index(store: Store, lister: StoreLister) -> None:
    assert ["a", "b"] == names(lister.list("ns", {INSTANCE: "db"}))
    assert ["b"] == names(lister.list("ns", {INSTANCE: "db", COMPONENT: "tikv"}))
    assert [] == lister.list("ns", {INSTANCE: "none"})


@pytest.mark.rule("LST-6")
def test_the_objects_of_an_owner_are_found_by_index(store: Store, lister: StoreLister) -> None:
    owned = pod("d")
    owner = {"apiVersion": "v1", "kind": "X", "name": "owner", "uid": "uid-1", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    store.add(as_object(owned))
    assert ["d"] == names(lister.owned_by("uid-1"))


def _letters(obj: Object) -> str:
    """Each letter of the name."""
    return obj.metadata.name


@pytest.mark.rule("ST-7")
def test_a_missing_index_is_created_at_its_first_use(store: Store, lister: StoreLister) -> None:
    assert ["a"] == names(lister.by_index(_letters, "a"))
    store.add(pod_object("ab"))
    assert ["a", "ab"] == names(lister.by_index(_letters, "a"))
    store.delete(pod_object("a"))
    assert (["ab"], []) == (names(lister.by_index(_letters, "a")), lister.by_index(_letters, "z"))


@pytest.mark.rule("ST-7")
def test_two_concurrent_first_uses_share_an_index(store: Store) -> None:
    for _ in range(2):
        store.ensure_indexer("letters", _letters)
    assert ["ns/a"] == store.index_keys("letters", "a")


@pytest.mark.rule("LST-3", "MUT-2")
def test_a_cached_object_cannot_be_changed(lister: StoreLister) -> None:
    cached: Lister = lister
    obj = cached.get("ns", "a")
    assert obj is not None
    with pytest.raises(TypeError):
        obj.metadata.labels["x"] = "y"  # type: ignore[index]  # what the test is about
    with pytest.raises(TypeError):
        obj.metadata.annotations["x"] = "y"  # type: ignore[index]  # what the test is about
    with pytest.raises(AttributeError):
        obj.metadata.name = "other"  # type: ignore[misc]  # what the test is about
    tree = obj.decode()
    tree["metadata"]["name"] = "other"
    assert obj.decode()["metadata"]["name"] == "a"


@pytest.mark.rule("LST-5")
def test_before_the_sync_a_lister_sees_less_than_there_is(clock: FakeClock) -> None:
    source = FakeSource()
    source.add(pod("a"))
    informer = informer_of(source, clock)
    lister = StoreLister(informer.store, informer.resource)
    assert (False, []) == (informer.has_synced(), lister.list())
    informer.reflector.step()
    assert (False, []) == (informer.has_synced(), lister.list()), "listed, not applied"
    informer.step()
    assert (True, ["ns/a"]) == (informer.has_synced(), [obj.key for obj in lister.list()])
