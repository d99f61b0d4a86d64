"""Pauses between requests: rejected writes, settings sent before, questions about slow starts.

Policies, quotas and servers change without an event, so each is repeated after a pause.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf

from member.outcome import Failed
from ports.ageing import Ageing, Entry
from ports.clock import Clock
from ports.pace import Pace

_RETRY = Pace(5.0, 60.0)
"""The pauses before a rejected write is tried again."""

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
    times: int


class Refusals:
    """Writes of components that the API server has rejected. Not thread-safe."""

    def __init__(self) -> None:
        self._known: Ageing[str, _Refusal] = Ageing()

    def standing(self, component: str, wanted: Callable[[], bytes], clock: Clock) -> Failed | None:
        """The rejection of the same wish, with the seconds that its pause still lasts; None once the write is due."""
        known = self._known.entry(component)
        # an outcome that depends on the time is decided again in each reconcile, so read it only for a rejection
        if known is None or clock.now() >= _due(known) or known.value.wanted != wanted():
            return None
        return Failed(known.value.failed.reason, known.value.failed.message, _due(known) - clock.now())

    def note(self, component: str, wanted: bytes, failed: Failed, clock: Clock) -> Failed:
        """Record a rejection; return it with the seconds until the next attempt, which double up to a minute."""
        known = self._known.get(component)
        times = known.times + 1 if known is not None and known.wanted == wanted else 1
        self._known.note(component, _Refusal(wanted, failed, times), clock.now())
        return Failed(failed.reason, failed.message, _RETRY.after(times))

    def forget(self, component: str) -> None:
        """Forget the rejection of a component, whose write was accepted."""
        self._known.drop(component)


def _due(known: Entry[_Refusal]) -> float:
    return known.at + _RETRY.after(known.value.times)


class AcceptedSettings:
    """Settings sent to servers that cannot be asked for them, or that rejected them. Not thread-safe."""

    def __init__(self) -> None:
        self._sent: Ageing[str, tuple[Hashable, float]] = Ageing()

    def is_new(self, target: str, setting: Hashable, clock: Clock) -> bool:
        """True if `target` was last sent another setting, or rejected this one more than five minutes ago."""
        known = self._sent.entry(target)
        return known is None or known.value[0] != setting or not known.is_fresh(clock.now(), known.value[1])

    def accepted(self, target: str, setting: Hashable, clock: Clock) -> None:
        """Record that `target` has accepted the setting."""
        self._sent.note(target, (setting, inf), clock.now())

    def refused(self, target: str, setting: Hashable, clock: Clock) -> None:
        """Record that `target` has rejected the setting."""
        self._sent.note(target, (setting, _RESEND), clock.now())

    def forget(self, target: str) -> None:
        """Forget a server that can now be asked for its settings."""
        self._sent.drop(target)


@dataclass(slots=True)
class _Complaint:
    read_at: float = -inf
    text: str = ""


class Complaints:
    """The events of Kubernetes about objects that do not start. Not thread-safe."""

    def __init__(self) -> None:
        self._known: Ageing[str, _Complaint] = Ageing(_FORGOTTEN)

    def of(self, key: str, read: Callable[[], str], clock: Clock) -> str:
        """The last complaint about `key`, empty without one.

        `read` is called after the object had ten seconds to start, and then every thirty seconds.
        """
        now = clock.now()
        known = self._known.touch(key, _Complaint, now)
        complaint = known.value
        if now - known.since >= _PATIENCE and now - complaint.read_at >= _READ_EVERY:
            complaint.read_at, complaint.text = now, read()
        return complaint.text
