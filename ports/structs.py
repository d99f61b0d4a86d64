"""Decoders that threads may share.

msgspec inspects a Struct at the first use of its type, and two threads that do this at once crash the interpreter
(docs/adr/0006). This module therefore prepares types under a lock before any thread decodes with them.
"""

import threading
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import inspect

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions of decoders for malformed bytes: invalid JSON or UTF-8, or nested too deeply."""

_T = TypeVar("_T")

_lock = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(model: type[_T]) -> msgspec.json.Decoder[_T]:
    """The decoder of a type, created by the first call. Afterwards `msgspec.convert` to the type is also safe."""
    found = _decoders.get(model)
    if found is None:
        with _lock:
            found = _decoders.setdefault(model, msgspec.json.Decoder(model))
    return found


def convert(tree: object, model: type[_T]) -> _T:
    """Convert a tree of plain containers into a typed value. Raises msgspec.ValidationError, which names the field."""
    if model not in _decoders:
        decoder(model)
    return msgspec.convert(tree, model)


@cache
def type_info(model: type[Any]) -> inspect.Type:
    """The type as `msgspec.inspect` describes it, which also prepares the type and the types of its fields."""
    with _lock:
        return inspect.type_info(model)
