"""What random plans are drawn with."""

from collections.abc import Sequence
from typing import TypeVar

from ports.randomness import Randomness

_T = TypeVar("_T")


def pick(draw: Randomness, options: Sequence[_T]) -> _T:
    """One of them, each as likely as the others."""
    return options[draw.integer(0, len(options) - 1)]


def between(draw: Randomness, low: float, high: float) -> float:
    """A number of seconds that reads well in a plan."""
    return round(draw.uniform(low, high), 2)
