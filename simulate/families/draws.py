"""Random draws for plans."""

from collections.abc import Sequence
from typing import TypeVar

from ports.randomness import Randomness

_T = TypeVar("_T")


def pick(draw: Randomness, options: Sequence[_T]) -> _T:
    """One of the options, with equal probability."""
    return options[draw.integer(0, len(options) - 1)]


def between(draw: Randomness, low: float, high: float) -> float:
    """A random number of seconds, rounded for readability."""
    return round(draw.uniform(low, high), 2)
