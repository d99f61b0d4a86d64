"""Pauses between requests: rejected writes, settings sent before, questions about slow starts.

Policies, quotas and servers change without an event, so each is repeated after a pause.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf

from member.outcome import Failed
from ports.clock import Clock

_FIRST_RETRY, _LONGEST_RETRY = 5.0, 60.0
"""Seconds before a rejected write is tried again: the first pause, and the longest one after doubling."""

_RESEND = 300.0
"""Seconds after which a rejected setting is sent again."""

_PATIENCE = 10.0
"""Seconds that an object gets to start before its events are read."""

_READ_EVERY = 30.0
_FORGOTTEN = 3600.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    wanted: bytes
    failed: Failed
    pause: float
    until: float


class Refusals:
    """Writes of components that the API server has rejected. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, _Refusal] = {}

    def standing(self, component: str, wanted: Callable[[], bytes], clock: Clock) -> Failed | None:
        """The rejection of the same wish, with the seconds that its pause still lasts; None once the write is due."""
        known = self._known.get(component)
        if known is None or clock.now() >= known.until or known.wanted != wanted():
            return None
        return Failed(known.failed.reason, known.failed.message, known.until - clock.now())

    def note(self, component: str, wanted: bytes, failed: Failed, clock: Clock) -> Failed:
        """Record a rejection; return it with the seconds until the next attempt, which double up to a minute."""
        known = self._known.get(component)
        pause = min(2 * known.pause, _LONGEST_RETRY) if known is not None and known.wanted == wanted else _FIRST_RETRY
        self._known[component] = _Refusal(wanted, failed, pause, clock.now() + pause)
        return Failed(failed.reason, failed.message, pause)

    def forget(self, component: str) -> None:
        """Forget the rejection of a component, whose write was accepted."""
        self._known.pop(component, None)


class AcceptedSettings:
    """Settings sent to servers that cannot be asked for them, or that rejected them. Not thread-safe."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[Hashable, float]] = {}

    def is_new(self, target: str, setting: Hashable, clock: Clock) -> bool:
        """True if `target` was last sent another setting, or rejected this one more than five minutes ago."""
        sent, until = self._sent.get(target, (None, -inf))
        return sent != setting or clock.now() >= until

    def accepted(self, target: str, setting: Hashable) -> None:
        """Record that `target` has accepted the setting."""
        self._sent[target] = (setting, inf)

    def refused(self, target: str, setting: Hashable, clock: Clock) -> None:
        """Record that `target` has rejected the setting."""
        self._sent[target] = (setting, clock.now() + _RESEND)

    def forget(self, target: str) -> None:
        """Forget a server that can now be asked for its settings."""
        self._sent.pop(target, None)


@dataclass(slots=True)
class _Complaint:
    since: float
    asked: float
    read_at: float = -inf
    text: str = ""


class Complaints:
    """The events of Kubernetes about objects that do not start. Not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, _Complaint] = {}

    def of(self, key: str, read: Callable[[], str], clock: Clock) -> str:
        """The last complaint about `key`, empty without one.

        `read` is called after the object had ten seconds to start, and then every thirty seconds.
        """
        now = clock.now()
        self._known = {each: known for each, known in self._known.items() if now - known.asked <= _FORGOTTEN}
        known = self._known.setdefault(key, _Complaint(now, now))
        known.asked = now
        if now - known.since >= _PATIENCE and now - known.read_at >= _READ_EVERY:
            known.read_at, known.text = now, read()
        return known.text
