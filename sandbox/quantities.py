"""Quantities as the API server checks and keeps them: `100m`, `1Gi`, `2e3`."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from ports import quantity
from ports.quantity import SUFFIXES

QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$")
"""The format of a quantity, in the API server's words."""

_BINARY = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki", "")
_DECIMAL = ("E", "P", "T", "G", "M", "k", "", "m", "u", "n")
_LARGEST = Decimal(quantity.LARGEST)
"""The API server's value for anything larger."""
_KIBI = 1024
_EXPONENT = re.compile("[EPTGMkmun]$")
_AS_EXPONENT = {each: f"e{3 * (6 - place)}" for place, each in enumerate(_DECIMAL) if each}


@lru_cache(maxsize=1000)
def canonical(text: str) -> str:
    """A quantity in the API server's form: a whole number of the largest unit of its kind. Raises ValueError."""
    written = text.strip()
    value = max(-_LARGEST, min(_LARGEST, quantity.parse(written)))
    if not value:
        return "0"
    if written[-2:] in _BINARY and abs(value) >= _KIBI and not value % 1:
        return _in_units(value, _BINARY)
    by_exponent = written[-1:].isdigit() and "e" in written.lower()
    found = _in_units(math.ceil(value / SUFFIXES["n"]) * SUFFIXES["n"], _DECIMAL)
    return _EXPONENT.sub(lambda unit: _AS_EXPONENT[unit[0]], found) if by_exponent else found


def _in_units(value: Decimal, suffixes: Sequence[str]) -> str:
    """The number with the largest of these suffixes of which it is a multiple."""
    suffix = next(each for each in suffixes if not value % SUFFIXES[each])
    return f"{int(value / SUFFIXES[suffix])}{suffix}"


def is_quantity(text: str) -> bool:
    """True if a text is a quantity; blanks are not allowed."""
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return QUANTITY.match(text) is not None
