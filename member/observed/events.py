"""Events as those read them who ask why something does not start. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from apis.times import parse_time

SAID_ELSEWHERE = frozenset({"BackOff", "Failed", "FailedScheduling", "Unhealthy"})
"""Reasons of events about what the status of a pod says itself."""

_RETRIED = timedelta(minutes=20)
"""A StatefulSet tries again to make a pod at least as often; an older refusal is over."""


class Involved(msgspec.Struct, frozen=True):
    """What an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """An event, as far as it is read."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    involved_object: Involved = msgspec.field(default_factory=Involved)

    @property
    def time(self) -> str:
        """When it happened last (RFC 3339); empty when unknown."""
        return self.last_timestamp or self.event_time or ""

    def is_recent(self, now: datetime) -> bool:
        """Whether it tells of something that is still tried."""
        at = parse_time(self.time)
        return at is not None and now - at < _RETRIED

    def names(self, pod: str) -> bool:
        """Whether its message names a pod."""
        return bool(re.search(rf"\b{re.escape(pod)}\b", self.message))


def newest_complaint(events: Iterable[Event]) -> Event | None:
    """The newest of the warnings that no status repeats; None when there is none."""
    told = [event for event in events if event.reason not in SAID_ELSEWHERE]
    return max(told, key=lambda event: event.time, default=None)
