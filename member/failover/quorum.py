"""The next step of a failover in a quorum (lifecycle.md 9.2). Pure functions.

One member is replaced at a time, and only with a healthy majority before and after.
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
    """The input of a decision.

    `lost` are all lost members, `failing` those without a record; `recorded` are the pods that have one. `open_record`
    is the record whose member may still be registered; `open_record_is_over` if nothing remains to be done for it.
    `awaited` names substitutes that do not run yet.
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
    """Nothing needs to be done, or nothing may be done."""


@dataclass(frozen=True, slots=True)
class Recover:
    """Drop all records: all members that the spec asks for are healthy."""


@dataclass(frozen=True, slots=True)
class DropRecord(Generic[R]):
    """Drop the open record: its member has returned, or the operator never removed it."""

    record: R


@dataclass(frozen=True, slots=True)
class Replace(Generic[R]):
    """Remove the open record's member, its pod and its volumes."""

    record: R


@dataclass(frozen=True, slots=True)
class RecordFailure:
    """Record this member as failed."""

    failing: Failing


@dataclass(frozen=True, slots=True)
class Wait:
    """Give the member time to recover."""


@dataclass(frozen=True, slots=True)
class Postpone:
    """The period is over, but the replacement must wait for something else."""

    failing: Failing
    until: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The period is over, but the maximum number of members is already replaced."""

    failing: Failing


@dataclass(frozen=True, slots=True)
class SubstituteLost:
    """A substitute is lost; it is not replaced in turn (F39)."""

    failing: Failing


@dataclass(frozen=True, slots=True)
class QuorumLost:
    """The quorum is lost: only an administrator can help."""


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
    """The next step of a failover (9.2, F12, F39, I8, I21, I24, I25)."""
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
        # the pod had recovered and is lost again: its existing substitute suffices
        return RecordFailure(first)
    if len(seen.recorded) >= seen.limit:
        return LimitReached(first)
    # add no substitute while another one is pending: it could not join before the next lost member is removed
    return Postpone(first, seen.awaited) if seen.awaited else RecordFailure(first)
