"""What this process has told servers that it does not ask, or that refused it: an idle reconcile tells nothing anew."""

from collections.abc import Hashable
from math import inf

from ports.clock import Clock

_AGAIN = 300.0
"""Seconds after which somebody who refused is told again."""


class AcceptedSettings:
    """What was told for one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[Hashable, float]] = {}

    def is_new(self, whom: str, what: Hashable, clock: Clock) -> bool:
        """Whether `whom` was last told something else, or has refused it long ago."""
        said, until = self._said.get(whom, (None, -inf))
        return said != what or clock.now() >= until

    def accepted(self, whom: str, what: Hashable) -> None:
        """Note that `whom` knows it now."""
        self._said[whom] = (what, inf)

    def forget(self, whom: str) -> None:
        """Begin anew with somebody who is asked what they know."""
        self._said.pop(whom, None)

    def refused(self, whom: str, what: Hashable, clock: Clock) -> None:
        """Note that `whom` does not want to know it."""
        self._said[whom] = (what, clock.now() + _AGAIN)
