"""Quantities of Kubernetes: `100m`, `1Gi`, `2e3`."""

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache

QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$")
"""What a quantity looks like, in the words of the API server."""

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


def quantity(text: str | int | float) -> Decimal:
    """The number a quantity means. Raises ValueError naming the text."""
    return _parsed(str(text).strip())


@lru_cache(maxsize=1000)
def _parsed(written: str) -> Decimal:
    for suffix in (written[-2:], written[-1:]):
        if suffix in _SUFFIXES:
            return _number(written[: -len(suffix)], written) * _SUFFIXES[suffix]
    return _number(written, written)


def is_quantity(text: str) -> bool:
    """Whether a text is a quantity, which blanks make it none."""
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
