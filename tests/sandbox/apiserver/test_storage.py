"""The storage: versions, history, restores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import Json
from sandbox.apiserver.storage import Storage, TooOld


def _tree(name: str, value: str = "") -> Json:
    return {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": name}, "value": value}


def test_each_write_of_any_resource_takes_the_next_version() -> None:
    storage = Storage()
    first = storage.write("things", _tree("a"))
    second = storage.write("others", _tree("a"))
    last = storage.remove("things", first)
    assert [first.version + 1, first.version + 2] == [second.version, last.version]
    assert str(last.version) == last.tree()["metadata"]["resourceVersion"]


def test_history_is_bounded_by_the_window() -> None:
    storage = Storage(window=10)
    start = storage.version
    for number in range(25):
        storage.write("things", _tree(str(number)))
    with pytest.raises(TooOld):
        storage.changes_after("things", start)
    assert 10 == len(storage.changes_after("things", storage.version - 10))


def test_compact_drops_history_even_of_resources_without_objects() -> None:
    storage = Storage()
    start = storage.version
    storage.write("things", _tree("a"))
    storage.compact()
    for resource in ("things", "others"):
        with pytest.raises(TooOld):
            storage.changes_after(resource, start)
    assert [] == storage.changes_after("things", storage.version)


def test_restore_recovers_objects_and_expires_all_versions() -> None:
    storage = Storage()
    storage.write("things", _tree("kept"))
    snapshot = storage.snapshot()
    storage.remove("things", storage.objects("things")[0])
    storage.write("others", _tree("gone"))
    version = storage.version
    storage.restore(snapshot)
    assert ["kept"] == [stored.name for stored in storage.objects("things")]
    assert [] == storage.objects("others")
    with pytest.raises(TooOld):
        storage.changes_after("things", version)


def test_a_restore_may_repeat_versions() -> None:
    storage = Storage()
    snapshot = storage.snapshot()
    storage.write("things", _tree("lost"))
    lost = storage.version
    storage.restore(snapshot, versions_go_back=True)
    storage.write("things", _tree("new"))
    assert [(lost, "new")] == [(stored.version, stored.name) for stored in storage.objects("things")]
    assert [] == storage.changes_after("things", lost), "a watch from the future is silent"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30))
def test_a_list_at_an_earlier_version_shows_that_state(writes: list[tuple[str, bool]]) -> None:
    storage = Storage()
    seen = {storage.version: storage.objects("things")}
    for name, wanted in writes:
        current = storage.get("things", name)
        if wanted:
            storage.write("things", _tree(name))
        elif current:
            storage.remove("things", current)
        seen[storage.version] = storage.objects("things")
    for version, objects in seen.items():
        assert objects == storage.list_at("things", "", version)
