"""TOML text that is stable byte by byte, because it feeds the digest in a ConfigMap's name (objects.md 6.2).

The notation is v1.6's: plain values before tables, each group sorted, two spaces per level. A cluster taken over from
v1.6 therefore keeps its text, and its pods keep running.
"""

import datetime
import math
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypeAlias

from ports import duration

Table: TypeAlias = dict[str, Any]
"""A TOML table: str, int, float, bool, date and time values, lists and tables of these."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_DURATION = re.compile(r"[0-9]+(?:\.[0-9]+)?[hms][0-9.hms]*")
"""Texts that may be durations, in the units that all servers read alike: hours, minutes, seconds, milliseconds."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP])i?B")
"""Units that all servers read alike; a kilobyte has 1024 bytes."""
_CONTROL = re.compile(r'[\x00-\x1f\x7f"\\]')


def loads(text: str) -> Table:
    """The tables of a TOML text. Raises ValueError that names line and column."""
    return tomllib.loads(text)


def dumps(table: Mapping[str, Any]) -> str:
    """The text of `table`; empty for an empty table. None values are left out.

    Raises TypeError for a value that TOML does not know.
    """
    return "".join(_table(table, ())).removeprefix("\n")


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if two configurations mean the same.

    An empty table equals an absent one; durations and sizes compare by value. 1, 1.0 and true differ, as they do to the
    servers. Durations in days always differ, because PD and TiDB do not know the unit.
    """
    return dumps(_canonical(one)) == dumps(_canonical(other))


def _canonical(table: Mapping[str, Any]) -> Table:
    found = {key: _canonical_value(key, value) for key, value in table.items()}
    return {key: value for key, value in found.items() if value != {} and value is not None}


def _canonical_value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        # labels are names of the user's own
        return dict(value) if key == "labels" else _canonical(value)
    if isinstance(value, list):
        return [_canonical(item) if isinstance(item, Mapping) else item for item in value]
    return _measure(value) if isinstance(value, str) else value


def _measure(text: str) -> str:
    """A duration in nanoseconds, a size in bytes; other text unchanged. A NUL separates them from text of users."""
    if _DURATION.fullmatch(text):
        with suppress(ValueError):
            return f"\0{duration.nanoseconds(text)} ns"
    if match := _SIZE.fullmatch(text):
        return f"\0{(Decimal(match[1]) * 1024 ** ('KMGTP'.index(match[2]) + 1)).normalize()} B"
    return text


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """The lines of a table's content: plain values, then tables."""
    present = {key: table[key] for key in sorted(table, key=str.encode) if table[key] is not None}
    indent = "  " * len(path)
    lines = [f"{indent}{_key(key)} = {_value(item)}\n" for key, item in present.items() if not _is_tabular(item)]
    for key, item in present.items():
        if isinstance(item, Mapping):
            lines += _sub_table(item, (*path, key))
        elif _is_tabular(item):
            lines += _array_of_tables(item, (*path, key))
    return lines


def _sub_table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    blank = "\n" if len(path) == 1 else ""
    return [f"{blank}{'  ' * (len(path) - 1)}[{_dotted(path)}]\n", *_table(table, path)]


def _array_of_tables(tables: list[Mapping[str, Any]], path: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    for table in tables:
        lines += [f"\n{'  ' * (len(path) - 1)}[[{_dotted(path)}]]\n", *_table(table, path)]
    return lines


def _is_tabular(item: object) -> bool:
    """True if an item gets its own header instead of a line `key = value`."""
    if isinstance(item, Mapping):
        return True
    return isinstance(item, list) and bool(item) and all(isinstance(element, Mapping) for element in item)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(_key(key) for key in path)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(item: object) -> str:  # noqa: PLR0911  (one line per type of TOML)
    match item:
        case bool():
            return "true" if item else "false"
        case str():
            return _string(item)
        case int():
            return str(item)
        case float():
            return _float(item)
        case list():
            return "[" + ", ".join(_value(element) for element in item) + "]"
        case datetime.datetime() | datetime.date() | datetime.time():
            return item.isoformat()
        case Mapping():
            pairs = (f"{_key(key)} = {_value(item[key])}" for key in sorted(item, key=str.encode))
            return "{" + ", ".join(pairs) + "}"
    raise TypeError(f"TOML has no notation for {type(item).__name__}")


def _string(text: str) -> str:
    return '"' + _CONTROL.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'


def _float(number: float) -> str:
    if not math.isfinite(number):
        return str(number)
    digits = format(Decimal(repr(number)), "f")
    return digits if "." in digits else f"{digits}.0"
