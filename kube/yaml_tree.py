"""Untrusted YAML as JSON trees: without aliases and infinite numbers."""

from typing import Any

import msgspec
import yaml

_MOST = 16 << 20
"""The maximum number of values and characters with all aliases expanded: far more than an API server accepts."""


class TooLarge(ValueError):
    """Raised for a document whose aliases would expand beyond the maximum."""


def load_yaml(content: bytes) -> Any:
    """The tree of a document.

    Raises TooLarge, yaml.YAMLError, and RecursionError, ValueError, LookupError, OverflowError or TypeError for
    documents that are nested too deeply or contain values outside JSON.
    """
    tree = yaml.safe_load(content)
    if _size(tree, {}) > _MOST:
        raise TooLarge("its aliases stand for more than an object can hold; write out what is meant")
    return msgspec.json.decode(msgspec.json.encode(tree))


def _size(tree: object, known: dict[int, int]) -> int:
    """The size of a tree with expanded aliases; `known` caches sizes by identity."""
    if id(tree) not in known:
        match tree:
            case dict():
                inside = sum(_size(each, known) for pair in tree.items() for each in pair)
            case list():
                inside = sum(_size(each, known) for each in tree)
            case str() | bytes():
                inside = len(tree)
            case _:
                inside = 0
        known[id(tree)] = 1 + inside
    return known[id(tree)]
