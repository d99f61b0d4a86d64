import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.list_splitting import ListSplitter

_KEYS = st.sampled_from(["a", "metadata", "items"])
_LEAVES: st.SearchStrategy[Any] = st.sampled_from([1, None, '},{"metadata":', '\\"items\\":[', "}]}", []])
_TREES = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner), max_leaves=8)
_ITEMS = st.lists(st.builds(lambda tree, more: {"metadata": tree} | more, _TREES, st.dictionaries(_KEYS, _TREES)))


def _read(pieces: list[bytes]) -> tuple[list[Any], list[Any], str | None]:
    """The items that were returned early, those returned at the end, and the list's version."""
    splitter = ListSplitter()
    early = [json.loads(raw) for piece in pieces for raw in splitter.feed(piece)]
    rest = splitter.end()
    return early, [json.loads(bytes(raw)) for raw in rest.items or ()], rest.metadata.resource_version


@pytest.mark.slow
@given(_ITEMS, st.booleans(), st.booleans(), st.lists(st.integers(0, 400)))
@pytest.mark.rule("TH-6")
def test_the_items_do_not_depend_on_the_pieces_of_a_list(
    items: list[Any], sorted_keys: bool, blanks: bool, cuts: list[int]
) -> None:
    tree = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items}
    body = json.dumps(tree, sort_keys=sorted_keys, separators=None if blanks else (",", ":")).encode()
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]

    early, late, version = _read([body[start:end] for start, end in pairwise(edges)])

    assert (items, "9") == (early + late, version)


@pytest.mark.rule("TH-5")
def test_returns_items_before_the_list_is_complete() -> None:
    head = (
        b'{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},{"metadata":{"na'
    )

    assert [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}] == _read([head, b'me":"c"}}]}'])[0]


def test_an_object_within_an_item_is_not_taken_for_an_item() -> None:
    nested = b'{"metadata":{"name":"a"},"templates":[{"metadata":{}},{"metadata":{}}]}'
    body = b'{"items":[' + nested + b"," + nested[:-20]

    assert [json.loads(nested)] == _read([body, nested[-20:] + b'],"kind":"SetList","metadata":{}}'])[0]


@pytest.mark.parametrize("body", [b"", b'{"kind":"PodList","metadata":{},"items":[{"metadata":{}},{"metadata":{}}'])
def test_a_list_that_ends_too_early_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        _read([body])


@pytest.mark.parametrize(
    "odd",
    [b'{"metadata":' + b"[" * 3000 + b"]" * 3000 + b"}", rb'{"metadata":{"name":"\ud800"}}', b'{"s":"}]\\",[{"}'],
    ids=["deep", "surrogate", "brackets"],
)
def test_splits_off_an_item_that_the_decoder_rejects(odd: bytes) -> None:
    deep, good = b'{"metadata":' + b"[" * 3000 + b"]" * 3000 + b"}", b'{"metadata": {}}'
    body = b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items": [' + b" , ".join([good, odd, deep]) + b"]}"
    splitter = ListSplitter()

    early = splitter.feed(body)

    assert [good, odd, deep] == early + [bytes(raw) for raw in splitter.end().items or ()]


def _pieces(body: bytes) -> list[bytes]:
    return [body[start : start + (1 << 16)] for start in range(0, len(body), 1 << 16)]


def _lookalikes(size: int) -> bytes:
    """A custom resource of `size` bytes whose managedFields, owners and templates all begin like the object itself."""
    kind = '{"apiVersion":"v1","kind":"A","metadata":{"a":{}}}'
    same = ",".join([kind] * 6)
    head = (
        f'{{"apiVersion":"v1","kind":"A","metadata":{{"name":"x","managedFields":[{same}]}},"templates":[{same}],"p":"'
    )
    return head.encode().ljust(size - 2, b"x") + b'"}'


@pytest.mark.slow
@pytest.mark.parametrize("size", [1 << 12, 1 << 13, 1 << 16, (1 << 16) - 1, 5000, 200_000])
@pytest.mark.rule("TH-6")
def test_a_list_costs_only_a_few_passes_over_its_bytes(size: int, mocker: Any) -> None:
    """At any end of a piece, e.g. always in the middle of the same field."""
    decoded = 0

    def decode(body: bytes) -> Any:
        nonlocal decoded
        decoded += len(body)
        return msgspec.json.Decoder(list[msgspec.Raw]).decode(body)

    mocker.patch("kube.list_splitting._arrays").decode = decode
    items = [_lookalikes(size)] * (8_000_000 // size)
    body = b'{"items":[' + b",".join(items) + b'],"kind":"AList","metadata":{}}'
    splitter, count = ListSplitter(), 0

    for piece in _pieces(body):
        count += len(splitter.feed(piece))

    assert len(items) == count + len(splitter.end().items or ())
    assert decoded <= 6 * len(body)


@pytest.mark.rule("TH-6")
def test_four_managers_of_fields_do_not_hide_where_an_item_ends() -> None:
    fields = ",".join(['{"apiVersion":"v1","fieldsType":"FieldsV1","manager":"m"}'] * 4)
    item = f'{{"apiVersion":"v1","kind":"A","metadata":{{"name":"x","managedFields":[{fields}]}},"spec":{{}}}}'.encode()
    whole = b'{"apiVersion":"v1","items":[' + b",".join([item] * 3)
    splitter = ListSplitter()

    assert [item] * 2 == splitter.feed(whole[: -len('},"spec":{}}')])


def test_the_items_of_a_list_within_the_list_are_not_taken_for_its_own() -> None:
    body = b'{"metadata":{"items":[{"a":{}},{"a":{}},{"a":{}}]},"items":[{"b":{}},{"b":{}}],"kind":"AList"}'

    assert ([], [{"b": {}}, {"b": {}}]) == _read([body])[:2]
