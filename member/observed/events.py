"""Kubernetes events that explain why something does not start. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from apis.times import parse_time

SAID_ELSEWHERE = frozenset({"BackOff", "Failed", "FailedScheduling", "Unhealthy"})
"""Reasons of events that repeat what the pod's status says."""

_RETRIED = timedelta(minutes=20)
"""A StatefulSet retries the creation of a pod at least this often, so an older rejection is over."""


class Involved(msgspec.Struct, frozen=True):
    """The object that an event is about."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an event that the operator reads."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    involved_object: Involved = msgspec.field(default_factory=Involved)

    @property
    def time(self) -> str:
        """The time of the last occurrence (RFC 3339); empty if unknown."""
        return self.last_timestamp or self.event_time or ""

    def is_recent(self, now: datetime) -> bool:
        """True if the event is so new that Kubernetes may still be retrying."""
        at = parse_time(self.time)
        return at is not None and now - at < _RETRIED

    def names(self, pod: str) -> bool:
        """True if the message contains the name of the pod."""
        return bool(re.search(rf"\b{re.escape(pod)}\b", self.message))


def newest_complaint(events: Iterable[Event]) -> Event | None:
    """The newest warning that no pod status repeats; None if there is none."""
    told = [event for event in events if event.reason not in SAID_ELSEWHERE]
    return max(told, key=lambda event: event.time, default=None)
