"""Decoders that threads may share.

msgspec works out what a Struct looks like at the first use of the type, and two threads that do so at once crash the
interpreter (docs/adr/0006). So types are prepared here, one at a time, before anybody decodes with them.
"""

import threading
from typing import Any, Final, TypeVar

import msgspec

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoders raise for bytes that are no such value: no JSON, no UTF-8, or nested too deeply."""

_T = TypeVar("_T")

_lock = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(model: type[_T]) -> msgspec.json.Decoder[_T]:
    """The decoder of a type, made at the first call. Also makes `msgspec.convert` to that type safe from then on."""
    found = _decoders.get(model)
    if found is None:
        with _lock:
            found = _decoders.setdefault(model, msgspec.json.Decoder(model))
    return found


def convert(tree: object, model: type[_T]) -> _T:
    """A tree of plain containers as a typed value. Raises msgspec.ValidationError, which names the field."""
    decoder(model)
    return msgspec.convert(tree, model)
