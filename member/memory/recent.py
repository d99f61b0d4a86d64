"""An answer of a server that seldom changes, good for a while: what reconciles would ask again and again."""

from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar

from ports.clock import Clock

T = TypeVar("T")


class Recent(Generic[T]):
    """One answer. For one thread at a time."""

    def __init__(self, seconds: float) -> None:
        """`seconds` is for how long an answer is good."""
        self._seconds = seconds
        self._answer: T | None = None
        self._until = -inf

    def answer(self, ask: Callable[[], T], clock: Clock) -> T:
        """The last answer, or what `ask` gives where that is too old. Raises as `ask`, which is asked again then."""
        if self._answer is None or clock.now() >= self._until:
            self._answer, self._until = ask(), clock.now() + self._seconds
        return self._answer
