"""Addresses of the operator's writes in plans: a number among all writes, or among those that match a glob.

A number among all writes changes with every added or removed write; `PATCH statefulsets.apps basic-tikv` as `of` is
independent of other writes. `python -m simulate record` shows the text that globs match.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import TypeAlias

from simulate.engine import plan
from simulate.engine.calls import Call

Address: TypeAlias = tuple[str, int]
"""A glob (empty for all writes) and a number from 1."""


def address(event: plan.Edit | plan.Fault) -> Address | None:
    """The write that an event waits for; None if it waits for something else."""
    return None if event.write is None else (event.of, event.write)


class WriteCounts:
    """The writes so far in one plan."""

    def __init__(self, events: Iterable[plan.Edit | plan.Fault]) -> None:
        self._globs = {event.of for event in events if event.of}
        self._counts: Counter[str] = Counter()

    def sent(self, call: Call) -> Collection[Address]:
        """Count a write and return its addresses."""
        matching = ["", *(each for each in self._globs if fnmatchcase(str(call), each))]
        self._counts.update(matching)
        return [(each, self._counts[each]) for each in matching]
