"""What to send for an event: nothing, a new object, or a higher count of a known one (EV-3).

Pure: time is an argument, state is in the correlator. Used by one thread.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from ports.ageing import Ageing
from ports.pace import Bucket, Pace

_AGGREGATE_AT = 10
"""The number of different messages with the same object and reason at which they become one event."""

_AGGREGATE_WINDOW = 600.0
"""Seconds after the last such event in which the next one still belongs to the same series."""

_SPAM = Pace(1.0, 1.0, at_once=25)
"""Events of one object: a burst, then one per second; v1.6's values."""

_REMEMBERED = 4096

_LONGEST = 1000
"""The maximum length of joined messages; Kubernetes allows 1024 characters."""

COMBINED = "(combined from similar events): "


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that never change while the object lives."""
        return (self.api_version, self.kind, self.namespace, self.name, self.uid)


@dataclass(frozen=True, slots=True)
class Happening:
    """One call of the recorder: an event about an object."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    at: datetime

    @property
    def subject(self) -> tuple[str, ...]:
        """The key of the spam filter."""
        return (*self.about.identity, self.type)

    @property
    def story(self) -> tuple[str, ...]:
        """The fields that similar events have in common: all but the message."""
        return (*self.subject, self.reason)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to create."""

    happening: Happening
    key: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class RepeatedEvent:
    """An event that the server knows as `name`; its count is to be patched."""

    happening: Happening
    key: tuple[str, ...]
    message: str
    name: str
    first: datetime
    count: int


@dataclass(slots=True)
class _Story:
    last: float
    messages: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Sent:
    name: str
    first: datetime
    count: int


def together(happenings: Iterable[Happening], reasons: Collection[str]) -> list[Happening]:
    """Join simultaneous events that differ only in their message and have one of these reasons.

    A repeated message stays an event of its own, because it is counted.
    """
    merged: list[Happening] = []
    latest: dict[tuple[str, ...], int] = {}
    messages: dict[tuple[str, ...], set[str]] = {}
    for happening in happenings:
        known, at = messages.setdefault(happening.story, set()), latest.get(happening.story)
        joined = f"{merged[at].message}; {happening.message}" if at is not None else ""
        if at is None or happening.reason not in reasons or happening.message in known or len(joined) > _LONGEST:
            latest[happening.story] = len(merged)
            merged.append(happening)
        else:
            merged[at] = replace(happening, message=joined)
        known.add(happening.message)
    return merged


class Correlator:
    """Joins, counts, and drops floods, in this order.

    Without it a flood of 1,000 events costs as many requests, not 124 (bench/memories.json). After a restart an event
    that is repeated becomes a new object.
    """

    def __init__(self) -> None:
        self._stories: Ageing[tuple[str, ...], _Story] = Ageing(most=_REMEMBERED)
        self._buckets: Ageing[tuple[str, ...], Bucket] = Ageing(most=_REMEMBERED)
        self._sent: Ageing[tuple[str, ...], _Sent] = Ageing(most=_REMEMBERED)

    def correlate(self, happening: Happening, now: float) -> NewEvent | RepeatedEvent | None:
        """What to send for an event at `now` (monotonic seconds); None if the spam filter drops it."""
        key, message = self._aggregated(happening, now)
        if not self._admits(happening, now):
            return None
        sent = self._sent.get(key)
        if sent is None:
            return NewEvent(happening, key, message)
        return RepeatedEvent(happening, key, message, sent.name, sent.first, sent.count + 1)

    def remember(self, key: tuple[str, ...], name: str, first: datetime, count: int) -> None:
        """Record that the server has the event `name` for `key`, with this count."""
        self._sent.note(key, _Sent(name, first, count))

    def _aggregated(self, happening: Happening, now: float) -> tuple[tuple[str, ...], str]:
        story = self._stories.touch(happening.story, partial(_Story, now)).value
        if now - story.last > _AGGREGATE_WINDOW:
            story.messages.clear()
        story.last = now
        story.messages[happening.message] = None
        if len(story.messages) < _AGGREGATE_AT:
            return (*happening.story, happening.message), happening.message
        # dropping one keeps the count at the limit and bounds the memory
        story.messages.popitem()
        return happening.story, COMBINED + happening.message

    def _admits(self, happening: Happening, now: float) -> bool:
        bucket = self._buckets.touch(happening.subject, partial(Bucket, _SPAM, now)).value
        is_admitted = bucket.left(now) >= 1
        bucket.take(now, float(is_admitted))
        return is_admitted
