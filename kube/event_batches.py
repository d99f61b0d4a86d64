"""What has happened and is not sent yet: of each object what came within seconds goes together (EV-3)."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from kube.event_correlation import Happening

_COLLECT = 3.0
"""Seconds in which what happens to an object is told together."""

_COLLECT_JOINED = 10.0
"""The same where nothing has happened but what is told as one: what a cluster is made of comes in three batches."""


@dataclass(slots=True)
class _Batch:
    due: float = math.inf
    happenings: list[Happening] = field(default_factory=list)


class EventBatches:
    """Happenings by object, until they are due. For one thread at a time."""

    def __init__(self, joined: Collection[str]) -> None:
        """`joined` are the reasons of what may be told as one, and later."""
        self._joined = joined
        self._batches: dict[tuple[str, ...], _Batch] = {}

    def add(self, happening: Happening, now: float) -> None:
        """One more, at `now`, monotonic seconds. What tells something by itself takes along what waits."""
        batch = self._batches.setdefault(happening.about.identity, _Batch())
        batch.due = min(batch.due, now + (_COLLECT_JOINED if happening.reason in self._joined else _COLLECT))
        batch.happenings.append(happening)

    def due(self) -> float:
        """When the next are due; infinity where nothing waits."""
        return min((batch.due for batch in self._batches.values()), default=math.inf)

    def take(self, now: float = math.inf) -> list[Happening]:
        """Those that are due at `now`, of each object in their order; they wait no more."""
        due = [key for key, batch in self._batches.items() if batch.due <= now]
        return [happening for key in due for happening in self._batches.pop(key).happenings]

    def __len__(self) -> int:
        return sum(len(batch.happenings) for batch in self._batches.values())
