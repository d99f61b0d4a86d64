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


def _read(pieces: list[bytes]) -> tuple[list[Any], list[Any], str]:
    """The items that came before the end, those left for the end, and the list's version."""
    splitter = ListSplitter()
    early = [json.loads(raw) for piece in pieces for raw in splitter.feed(piece)]
    rest = splitter.end()
    return early, [json.loads(bytes(raw)) for raw in rest.items or ()], rest.metadata.resource_version


@pytest.mark.slow
@given(_ITEMS, st.booleans(), st.booleans(), st.lists(st.integers(0, 400)))
def test_TH_6_however_a_list_is_cut_it_has_the_same_items(
    items: list[Any], sorted_keys: bool, blanks: bool, cuts: list[int]
) -> None:
    tree = {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": items}
    body = json.dumps(tree, sort_keys=sorted_keys, separators=None if blanks else (",", ":")).encode()
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]

    early, late, version = _read([body[start:end] for start, end in pairwise(edges)])

    assert (items, "9") == (early + late, version)


def test_TH_5_items_are_there_before_the_list_is_complete() -> None:
    head = (
        b'{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},{"metadata":{"na'
    )

    assert [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}] == _read([head, b'me":"c"}}]}'])[0]


def test_an_object_in_an_item_is_not_taken_for_one() -> None:
    nested = b'{"metadata":{"name":"a"},"templates":[{"metadata":{}},{"metadata":{}}]}'
    body = b'{"items":[' + nested + b"," + nested[:-20]

    assert [json.loads(nested)] == _read([body, nested[-20:] + b'],"kind":"SetList","metadata":{}}'])[0]


@pytest.mark.parametrize("body", [b"", b'{"kind":"PodList","metadata":{},"items":[{"metadata":{}},{"metadata":{}}'])
def test_a_list_that_ends_too_early_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        _read([body])
