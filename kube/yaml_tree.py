"""YAML that anybody may have written, as JSON trees: without references, and without numbers that have no end."""

from typing import Any

import msgspec
import yaml

_MOST = 16 << 20
"""Values and characters with all aliases written out: far more than an API server takes in one object."""


class TooLarge(ValueError):
    """Raised for a few lines whose aliases stand for billions."""


def load_yaml(content: bytes) -> Any:
    """The tree of a document.

    Raises TooLarge, yaml.YAMLError, and RecursionError, ValueError, LookupError, OverflowError or TypeError for what
    is nested too deeply and for values that JSON does not know.
    """
    tree = yaml.safe_load(content)
    if _size(tree, {}) > _MOST:
        raise TooLarge("its aliases stand for more than an object can hold; write out what is meant")
    return msgspec.json.decode(msgspec.json.encode(tree))


def _size(tree: object, known: dict[int, int]) -> int:
    """The size of a tree with its aliases written out; `known` are the sizes of trees, by their identity."""
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
