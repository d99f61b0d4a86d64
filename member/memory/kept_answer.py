"""An answer of the data plane that seldom changes: asked for again once the cluster has changed, or after a while."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from member.memory.decided import LONGEST
from ports.clock import Clock

T = TypeVar("T")


class KeptAnswer(Generic[T]):
    """The last answer to one question. For one thread at a time."""

    def __init__(self) -> None:
        self._last: tuple[Hashable, float, T] | None = None

    def of(self, version: Hashable, clock: Clock, ask: Callable[[], T]) -> T:
        """The answer that was given for this `version` of the cluster at most LONGEST seconds ago, or a new one.

        Raises what `ask` raises.
        """
        now = clock.now()
        if self._last is not None:
            asked_for, until, answer = self._last
            if asked_for == version and now < until:
                return answer
        answer = ask()
        self._last = version, now + LONGEST, answer
        return answer
