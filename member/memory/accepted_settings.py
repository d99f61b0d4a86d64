"""What this process has sent to servers that it does not ask, or that refused it: an idle reconcile sends nothing."""

from collections.abc import Hashable
from math import inf

from ports.clock import Clock

_AGAIN = 300.0
"""Seconds after which a setting that was refused is sent again."""


class AcceptedSettings:
    """What was sent for one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[Hashable, float]] = {}

    def is_new(self, target: str, what: Hashable, clock: Clock) -> bool:
        """Whether `target` was last sent something else, or has refused it long ago."""
        sent, until = self._sent.get(target, (None, -inf))
        return sent != what or clock.now() >= until

    def accepted(self, target: str, what: Hashable) -> None:
        """Note that `target` has accepted it."""
        self._sent[target] = (what, inf)

    def forget(self, target: str) -> None:
        """Remember nothing of a server that is asked for its settings instead."""
        self._sent.pop(target, None)

    def refused(self, target: str, what: Hashable, clock: Clock) -> None:
        """Note that `target` has refused it."""
        self._sent[target] = (what, clock.now() + _AGAIN)
