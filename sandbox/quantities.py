"""Quantities of Kubernetes: `100m`, `1Gi`, `2e3`."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache

QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$")
"""The format of a quantity, in the API server's words."""

_SUFFIXES = {
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
}
_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", "")
_DECIMAL = ("E", "P", "T", "G", "M", "k", "", "m", "u", "n")
_UNITS = _SUFFIXES | {"": Decimal(1)}
_LARGEST = Decimal((1 << 63) - 1)
"""The API server's value for anything larger."""
_KIBI = 1024
_EXPONENT = re.compile("[EPTGMkmun]$")
_AS_EXPONENT = {each: f"e{3 * (6 - place)}" for place, each in enumerate(_DECIMAL) if each}


def quantity(text: str | int | float) -> Decimal:
    """The value of a quantity. Raises ValueError, which quotes the text."""
    return _parsed(str(text).strip())


@lru_cache(maxsize=1000)
def _parsed(written: str) -> Decimal:
    for suffix in (written[-2:], written[-1:]):
        if suffix in _SUFFIXES:
            return _number(written[: -len(suffix)], written) * _SUFFIXES[suffix]
    return _number(written, written)


@lru_cache(maxsize=1000)
def canonical(text: str) -> str:
    """A quantity in the API server's form: a whole number of the largest unit of its kind. Raises ValueError."""
    written = text.strip()
    value = max(-_LARGEST, min(_LARGEST, quantity(written)))
    if not value:
        return "0"
    if written[-2:] in _BINARY and abs(value) >= _KIBI and not value % 1:
        return _in_units(value, _BINARY)
    by_exponent = written[-1:].isdigit() and "e" in written.lower()
    found = _in_units(math.ceil(value / _SUFFIXES["n"]) * _SUFFIXES["n"], _DECIMAL)
    return _EXPONENT.sub(lambda unit: _AS_EXPONENT[unit[0]], found) if by_exponent else found


def _in_units(value: Decimal, suffixes: Sequence[str]) -> str:
    """The number with the largest of these suffixes of which it is a multiple."""
    suffix = next(each for each in suffixes if not value % _UNITS[each])
    return f"{int(value / _UNITS[suffix])}{suffix}"


def is_quantity(text: str) -> bool:
    """True if a text is a quantity; blanks are not allowed."""
    try:
        quantity(text)
    except ValueError:
        return False
    return QUANTITY.match(text) is not None


def _number(digits: str, written: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation as error:
        raise ValueError(f"not a quantity: {written!r}") from error
