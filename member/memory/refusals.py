"""What the API server has refused of a component: asked for again after a pause, which doubles each time.

Policies and quotas change without an event. Until they do, what runs is looked after as it runs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from member.outcome import Failed
from ports.clock import Clock

_FIRST, _LONGEST = 5.0, 60.0
"""Seconds between two attempts."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    wanted: bytes
    said: Failed
    pause: float
    until: float


class Refusals:
    """Those of one cluster. For one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, _Refusal] = {}

    def standing(self, component: str, wanted: Callable[[], bytes], clock: Clock) -> Failed | None:
        """What was said to what is `wanted` of a component, as long as that is not asked for again."""
        known = self._known.get(component)
        if known is None or clock.now() >= known.until or known.wanted != wanted():
            return None
        return Failed(known.said.reason, known.said.message, known.until - clock.now())

    def note(self, component: str, wanted: bytes, said: Failed, clock: Clock) -> Failed:
        """Note a refusal; it is returned with the seconds until the next attempt."""
        known = self._known.get(component)
        pause = min(2 * known.pause, _LONGEST) if known is not None and known.wanted == wanted else _FIRST
        self._known[component] = _Refusal(wanted, said, pause, clock.now() + pause)
        return Failed(said.reason, said.message, pause)

    def forget(self, component: str) -> None:
        """It was not refused."""
        self._known.pop(component, None)
