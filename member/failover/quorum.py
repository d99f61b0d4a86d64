"""Which step a failover in a quorum takes next (lifecycle.md 9.2). Pure.

One member at a time is replaced, and only where a majority is healthy before and after.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from member.failover.steps import to_record
from member.failover.witnesses import Failing

R = TypeVar("R")
"""A failure record."""


@dataclass(frozen=True, slots=True)
class Situation(Generic[R]):
    """What a decision is made on.

    `lost` are all lost members, `failing` those without a record; `recorded` are the pods with one. `open_record` is
    the record whose member may still be registered, and `open_record_is_over` whether nothing must be done for it any
    more. `awaited` are substitutes that have not come to the point where they ask to join.
    """

    lost: Sequence[Failing]
    failing: Sequence[Failing]
    recorded: Collection[str]
    open_record: R | None
    open_record_is_over: bool
    all_healthy: bool
    enough_serve: bool
    lost_substitutes: Sequence[Failing]
    awaited: str
    has_majority: bool
    limit: int
    period: float


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to do, or nothing may be done."""


@dataclass(frozen=True, slots=True)
class Recover:
    """Drop all records: what the spec asks for is well."""


@dataclass(frozen=True, slots=True)
class DropRecord(Generic[R]):
    """Drop the open record: its member is back, or was never removed by us."""

    record: R


@dataclass(frozen=True, slots=True)
class Replace(Generic[R]):
    """Remove the member of the open record, its pod and its volumes."""

    record: R


@dataclass(frozen=True, slots=True)
class RecordFailure:
    """Record this member as failed."""

    failing: Failing


@dataclass(frozen=True, slots=True)
class Wait:
    """Give it time to come back."""


@dataclass(frozen=True, slots=True)
class Postpone:
    """Its time is up, but something comes first."""

    failing: Failing
    until: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Its time is up, but as many were replaced as may be."""

    failing: Failing


@dataclass(frozen=True, slots=True)
class SubstituteLost:
    """What serves in the place of a lost one is lost, too, and is not replaced again (F39)."""

    failing: Failing


@dataclass(frozen=True, slots=True)
class QuorumLost:
    """It can't decide any more: only an administrator can help."""


Step: TypeAlias = (
    Nothing
    | Recover
    | DropRecord[R]
    | Replace[R]
    | RecordFailure
    | Wait
    | Postpone
    | LimitReached
    | SubstituteLost
    | QuorumLost
)


def next_step(seen: Situation[R]) -> Step[R]:
    """The next step of a failover, and why (9.2, F12, F39, I8, I21, I24, I25)."""
    if seen.recorded and seen.all_healthy:
        return Recover()
    if seen.open_record and seen.open_record_is_over:
        return DropRecord(seen.open_record)
    if not seen.has_majority:
        return QuorumLost()
    if not seen.limit:
        return Nothing()
    return Replace(seen.open_record) if seen.open_record else _of_new_loss(seen)


def _of_new_loss(seen: Situation[R]) -> Step[R]:
    due = to_record(seen.failing, 0, 1, seen.period)
    if not due and not seen.failing and (stuck := to_record(seen.lost_substitutes, 0, 1, seen.period)):
        return SubstituteLost(stuck[0])
    if not due:
        return Wait() if seen.failing else Nothing()
    first = due[0]
    if first.pod in seen.recorded:
        # it has come back, and is lost again: the substitute that it has is enough
        return RecordFailure(first)
    if len(seen.recorded) >= seen.limit:
        return LimitReached(first)
    # one that runs can't join before the next lost member is removed: none is added while another one is away
    return Postpone(first, seen.awaited) if seen.awaited else RecordFailure(first)
