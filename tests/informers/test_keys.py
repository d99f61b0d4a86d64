import pytest

from informers.keys import (
    MalformedKeyError,
    ObjectKeyError,
    deletion_handling_meta_namespace_key_func,
    meta_namespace_key_func,
    split_meta_namespace_key,
)
from informers.tombstones import DeletedFinalStateUnknown
from tests.informers.support import pod_object


@pytest.mark.parametrize(("namespace", "key"), [("ns", "ns/a"), ("", "a")])
@pytest.mark.rule("KEY-1")
def test_the_key_is_namespace_and_name(namespace: str, key: str) -> None:
    assert key == meta_namespace_key_func(pod_object("a", namespace=namespace))


@pytest.mark.rule("KEY-2")
def test_a_text_is_no_object() -> None:
    with pytest.raises(ObjectKeyError, match="'ns/a'"):
        meta_namespace_key_func("ns/a")


@pytest.mark.rule("KEY-3")
def test_a_tombstone_brings_its_own_key() -> None:
    assert deletion_handling_meta_namespace_key_func(DeletedFinalStateUnknown("ns/gone", None)) == "ns/gone"
    assert deletion_handling_meta_namespace_key_func(pod_object("a")) == "ns/a"


@pytest.mark.parametrize(
    ("key", "parts"),
    [("n", ("", "n")), ("ns/n", ("ns", "n")), ("", ("", "")), ("/n", ("", "n")), ("n/", ("n", ""))],
)
@pytest.mark.rule("KEY-4")
def test_a_key_splits_at_its_slash(key: str, parts: tuple[str, str]) -> None:
    assert parts == split_meta_namespace_key(key)


@pytest.mark.rule("KEY-4")
def test_two_slashes_are_no_key() -> None:
    with pytest.raises(MalformedKeyError, match="'a/b/c'"):
        split_meta_namespace_key("a/b/c")


@pytest.mark.rule("KEY-5")
def test_the_error_for_missing_metadata_shows_the_object_and_keeps_its_cause() -> None:
    with pytest.raises(ObjectKeyError, match="has no metadata: 42") as caught:
        meta_namespace_key_func(42)
    assert isinstance(caught.value.__cause__, AttributeError)
