"""An answer of the data plane that seldom changes: asked for again when its cause changes, or after a while."""

from collections.abc import Callable
from typing import Generic, TypeVar

from member.memory.decided import LONGEST
from ports.clock import Clock

T = TypeVar("T")


class KeptAnswer(Generic[T]):
    """The last answer to one question. For one thread at a time."""

    def __init__(self) -> None:
        self._last: tuple[object, float, T] | None = None

    def of(self, cause: object, clock: Clock, ask: Callable[[], T]) -> T:
        """The answer that was given for an equal `cause` at most LONGEST seconds ago, or a new one.

        Raises what `ask` raises.
        """
        now = clock.now()
        if self._last is not None:
            asked_for, until, answer = self._last
            if asked_for == cause and now < until:
                return answer
        answer = ask()
        self._last = cause, now + LONGEST, answer
        return answer
