"""Events that are not sent yet: events about one object within seconds are sent together (EV-3)."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from kube.event_correlation import Happening

_COLLECT = 3.0
"""Seconds for which events about an object are collected."""

_COLLECT_JOINED = 10.0
"""The same if all collected events may be joined: a cluster's objects are created in three batches."""


@dataclass(slots=True)
class _Batch:
    due: float = math.inf
    happenings: list[Happening] = field(default_factory=list)


class EventBatches:
    """Events by object, until they are due. Not thread-safe."""

    def __init__(self, joined: Collection[str]) -> None:
        """`joined` are the reasons whose events may be joined and sent later."""
        self._joined = joined
        self._batches: dict[tuple[str, ...], _Batch] = {}

    def add(self, happening: Happening, now: float) -> None:
        """Add an event at `now` (monotonic seconds). An event that cannot be joined sends the waiting ones with it."""
        batch = self._batches.setdefault(happening.about.identity, _Batch())
        batch.due = min(batch.due, now + (_COLLECT_JOINED if happening.reason in self._joined else _COLLECT))
        batch.happenings.append(happening)

    def due(self) -> float:
        """When the next events are due; infinity if none waits."""
        return min((batch.due for batch in self._batches.values()), default=math.inf)

    def take(self, now: float = math.inf) -> list[Happening]:
        """Remove and return the events that are due at `now`, in order for each object."""
        due = [key for key, batch in self._batches.items() if batch.due <= now]
        return [happening for key in due for happening in self._batches.pop(key).happenings]

    def __len__(self) -> int:
        return sum(len(batch.happenings) for batch in self._batches.values())
