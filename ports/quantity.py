"""Kubernetes quantities, exact: `10Gi`, `500m`, `1e3`."""

import math
import re
from decimal import Decimal
from functools import lru_cache

SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
"""The factor of each suffix."""
LARGEST = (1 << 63) - 1
"""Bytes: no volume is larger."""

_BEYOND = 100
"""Digits before or behind the point: far beyond what Kubernetes keeps apart, and still quick to calculate with."""
_LONGEST_EXPONENT = 10
_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_QUANTITY = re.compile(
    rf"(?P<number>[+-]?(?:{_NUMBER}))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)


@lru_cache(maxsize=4096)
def parse(quantity: str | int | float) -> Decimal:
    """The exact value in units, bytes for storage and memory. Raises ValueError when it is not a quantity."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{quantity!r} is not a quantity; use, for example, 10Gi, 500m or 2")
    text, exponent = match["number"], match["exponent"] or "0"
    if len(text) > _BEYOND or len(exponent) > _LONGEST_EXPONENT:
        raise ValueError(f"a quantity of {len(text) + len(exponent)} digits; use, for example, 10Gi, 500m or 2")
    number = Decimal(text).scaleb(max(-_BEYOND, min(_BEYOND, int(exponent))))
    return number * SUFFIXES[match["suffix"] or ""]


def units(quantity: str | int | float) -> int:
    """The value in whole units, rounded up as Kubernetes rounds. Raises ValueError when it is not a quantity."""
    return math.ceil(parse(quantity))
