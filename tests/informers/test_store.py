from collections.abc import Callable, Iterable

import pytest

from informers.index import DEFAULT_INDEXERS, Indexers
from informers.store import IndexConflictError, IndexNotFoundError, Store
from kube.objects import Object
from tests.informers.fake_source import pod
from tests.informers.support import as_object, pod_object


def _colors(obj: Object) -> list[str]:
    return obj.metadata.labels.get("colors", "").split("-") if "colors" in obj.metadata.labels else []


COLORS: Indexers = {"color": _colors}


def names(objects: Iterable[Object]) -> list[str]:
    return sorted(obj.metadata.name for obj in objects)


@pytest.mark.rule("ST-1")
def test_stored_objects_can_be_read_and_deleted() -> None:
    store = Store()
    first, second = pod_object("a"), pod_object("b")
    store.add(first)
    store.update(second)
    assert (first, second) == (store.get_by_key("ns/a"), store.get(pod_object("b")))
    assert ["ns/a", "ns/b"] == sorted(store.list_keys())
    store.delete(pod_object("a"))
    assert store.get_by_key("ns/a") is None
    assert ["b"] == names(store.list())


@pytest.mark.rule("ST-2")
def test_results_are_lists_of_ones_own() -> None:
    store = Store()
    store.add(pod_object("a"))
    store.list().clear()
    assert len(store) == 1


@pytest.mark.rule("ST-3")
def test_an_object_is_found_under_each_of_its_values_and_no_others() -> None:
    store = Store(COLORS)
    store.add(pod_object("a", colors="red-blue-red"))
    assert ["a"] == names(store.by_index("color", "red"))
    assert ["a"] == names(store.by_index("color", "blue"))
    store.update(pod_object("a", colors="blue-green"))
    assert [] == store.by_index("color", "red")
    assert ["a"] == names(store.by_index("color", "green"))


@pytest.mark.rule("ST-4")
def test_values_without_objects_vanish() -> None:
    store = Store(COLORS)
    store.add(pod_object("a", colors="red"))
    store.add(pod_object("b", colors="red-blue"))
    store.delete(pod_object("b"))
    assert ["red"] == store.list_index_values("color")


@pytest.mark.rule("ST-5")
def test_index_answers_the_union_over_the_values_of_an_object() -> None:
    store = Store(COLORS)
    store.add(pod_object("a", colors="red"))
    store.add(pod_object("b", colors="blue"))
    store.add(pod_object("c", colors="green"))
    assert ["a", "b"] == names(store.index("color", pod_object("x", colors="red-blue")))
    assert [] == store.by_index("color", "black")


@pytest.mark.rule("ST-5")
def test_an_unknown_index_is_an_error() -> None:
    with pytest.raises(IndexNotFoundError, match=r"^Index with name shape does not exist$"):
        Store().by_index("shape", "round")
    with pytest.raises(IndexNotFoundError, match="shape"):
        Store().index("shape", pod_object("a"))


@pytest.mark.rule("ST-6")
def test_index_keys_are_sorted() -> None:
    store = Store(COLORS)
    for name in ("c", "a", "b"):
        store.add(pod_object(name, colors="red"))
    assert ["ns/a", "ns/b", "ns/c"] == store.index_keys("color", "red")


@pytest.mark.rule("ST-7")
def test_indexers_can_be_added_to_a_full_store() -> None:
    store = Store(DEFAULT_INDEXERS)
    store.add(pod_object("a", colors="red"))
    store.add_indexers(COLORS)
    store.add(pod_object("b", colors="red"))
    assert ["ns/a", "ns/b"] == store.index_keys("color", "red")


@pytest.mark.rule("ST-7")
def test_a_clash_of_names_adds_nothing() -> None:
    store = Store(COLORS)
    with pytest.raises(IndexConflictError, match="color"):
        store.add_indexers({"shape": _colors, "color": _colors})
    assert ["color"] == list(store.get_indexers())


@pytest.mark.rule("ST-8")
def test_a_failing_index_function_costs_the_object_that_index_only() -> None:
    failed: list[str] = []

    def fail(_: Object) -> list[str]:
        raise ValueError("no shape")

    store = Store({"shape": fail, **COLORS}, failed.append)
    store.add(pod_object("a", colors="red"))
    assert ["a"] == names(store.by_index("color", "red"))
    assert [] == store.list_index_values("shape")
    assert ["shape"] == failed


@pytest.mark.rule("ST-9")
def test_namespaces_are_indexed() -> None:
    store = Store(DEFAULT_INDEXERS)
    store.add(pod_object("a", namespace="one"))
    store.add(pod_object("node", namespace=""))
    assert ["a"] == names(store.by_index("namespace", "one"))
    assert ["node"] == names(store.by_index("namespace", ""))


@pytest.mark.rule("ST-10")
def test_the_store_has_the_version_of_the_last_write() -> None:
    store = Store()
    store.add(pod_object("a", "7"))
    assert store.last_resource_version == "7"
    store.add(pod_object("b", "5"))
    assert store.last_resource_version == "5"
    store.delete(pod_object("a", "9"))
    assert store.last_resource_version == "9"
    store.bookmark("12")
    assert store.last_resource_version == "12"
    store.add(pod_object("c", ""))
    assert store.last_resource_version == "12"


@pytest.mark.rule("ST-11")
def test_replace_swaps_content_indexes_and_version() -> None:
    store = Store(COLORS)
    store.add(pod_object("a", colors="red"))
    store.replace([pod_object("b", colors="blue")], "42")
    assert ["b"] == names(store.list())
    assert ["blue"] == store.list_index_values("color")
    assert store.last_resource_version == "42"


@pytest.mark.rule("3.8")
def test_only_changes_are_counted() -> None:
    store = Store()
    changes: list[Callable[[], None]] = [
        lambda: store.add(pod_object("a")),
        lambda: store.update(pod_object("a")),
        lambda: store.delete(pod_object("a")),
        lambda: store.replace([], "7"),
    ]
    counts = [store.changes]
    for change in changes:
        change()
        counts.append(store.changes)
    assert sorted(set(counts)) == counts
    store.bookmark("8")
    store.ensure_indexer("color", _colors)
    assert counts[-1] == store.changes


@pytest.mark.rule("LST-6")
def test_owners_and_instances_are_indexed() -> None:
    owned = pod("a", **{"app.kubernetes.io/instance": "db"})
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "X", "name": "bystander", "uid": "uid-0"},
        {"apiVersion": "v1", "kind": "X", "name": "owner", "uid": "uid-1", "controller": True},
    ]
    store = Store(DEFAULT_INDEXERS)
    store.add(as_object(owned))
    store.add(pod_object("b"))
    assert ["uid-1"] == store.list_index_values("owner-uid")
    assert ["ns/db"] == store.list_index_values("instance")
