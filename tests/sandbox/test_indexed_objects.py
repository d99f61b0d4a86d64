"""Objects by key and by labels."""

from kube.objects import Json
from sandbox.indexed_objects import IndexedObjects


def _tree(namespace: str, name: str, **labels: str) -> Json:
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}}


def _filled(*trees: Json) -> IndexedObjects:
    objects = IndexedObjects()
    for tree in trees:
        objects.put(f"{tree['metadata']['namespace']}/{tree['metadata']['name']}", tree)
    return objects


def test_a_selector_finds_what_carries_all_of_its_labels_by_name() -> None:
    one, other = _tree("a", "2", app="db", part="pd"), _tree("a", "1", app="db", part="pd", more="x")
    objects = _filled(one, other, _tree("a", "3", app="db"), _tree("b", "1", app="db", part="pd"))

    assert [other, one] == objects.selected("a", {"app": "db", "part": "pd"})
    assert [] == objects.selected("a", {"app": "db", "part": "tikv"})


def test_labels_count_as_they_are_now() -> None:
    objects = _filled(_tree("a", "1", app="db"))
    changed = _tree("a", "1", app="web")
    objects.put("a/1", changed)

    assert ([], [changed]) == (objects.selected("a", {"app": "db"}), objects.selected("a", {"app": "web"}))


def test_does_not_find_removed_objects() -> None:
    objects = _filled(_tree("a", "1", app="db"), _tree("", "node"))
    objects.remove("a/1")
    objects.remove("a/1")

    assert objects.get("a/1") is None
    assert [] == objects.selected("a", {"app": "db"}) == objects.within("a")
    assert 1 == len(objects.within())
