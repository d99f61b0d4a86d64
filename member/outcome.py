"""The outcome of a stage: done, or not yet and why, in a sentence that says what the user can do (design.md 3.3).

A wait is a value, not an exception: the sync shows it as a condition and continues with independent stages.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeAlias

from kube.apply import ForeignOwner
from kube.contests import DeletedEachTime
from kube.taken_names import TakenNames

DONE = "Done"
"""The condition reason if nothing is left to do."""

CONTESTED = "Contested"
"""The condition reason if other clients undo what the operator writes (`kube.contests`)."""

SOONEST, LATEST = 0.5, 10.0
"""Seconds until the next check: of a wait that has just begun, and of one that has lasted long."""
_PART = 0.1
"""The pause before the next check, as a share of the time that the wait has lasted."""


@dataclass(frozen=True, slots=True)
class Done:
    """The stage found everything as wanted; another `reason` than Done says more, e.g. Suspended.

    `retry_after`: seconds until the mere passage of time makes this untrue; no event reports that.
    """

    message: str = ""
    reason: str = DONE
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The stage cannot continue yet, as expected.

    `reason` is a condition reason (CamelCase), `message` a sentence about what the stage waits for. `retry_after` is in
    seconds; None means that an event triggers the next reconcile. `serves`: the component serves as wanted, so other
    waits are reported first. `step`: the part of `message` that changes only with progress, empty if that is all of it.
    `way_out`: what the user can do if the wait lasts too long.
    """

    reason: str
    message: str
    retry_after: float | None = None
    serves: bool = False
    step: str = ""
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The stage rejects what the spec asks for, and has written nothing for it; only the user can change that.

    `retry_after`: seconds until the next check, for work that continues meanwhile.
    """

    reason: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A step that should have worked failed: an answer was missing, or a request was refused. Retried with back-off.

    With `retry_after`, the sync retries after that many seconds instead, and delays nothing else because of the
    failure.
    """

    reason: str
    message: str
    retry_after: float | None = None


NotDone: TypeAlias = Waiting | Refused | Failed
"""The reasons why a stage does not continue in this reconcile."""

Outcome: TypeAlias = Done | NotDone


def poll_interval(age: float) -> float:
    """Seconds until the next check of a wait that has lasted `age` seconds (negative if the clock was set back)."""
    return max(SOONEST, min(_PART * abs(age), LATEST))


_RETRY_AFTER: Callable[[Outcome], float | None] = attrgetter("retry_after")


def first_retry(outcomes: Iterable[Outcome]) -> float | None:
    """Seconds until the first retry that any outcome asks for; None if none does."""
    return min(filter(None, map(_RETRY_AFTER, outcomes)), default=None)


def in_time_for(outcome: Outcome, *untold: Outcome) -> Outcome:
    """`outcome`, with an earlier retry if one of the outcomes that are not reported (`untold`) needs it.

    A failure with a back-off keeps that.
    """
    if isinstance(outcome, Failed) and outcome.retry_after is None:
        return outcome
    return replace(outcome, retry_after=first_retry((outcome, *untold)))


@dataclass(frozen=True, slots=True)
class Wait:
    """The step is to wait for `what`; `seconds` if the duration is known."""

    what: str
    seconds: float | None = None


FOREIGN_OWNER = "ForeignOwner"

NOT_OURS = (ForeignOwner, DeletedEachTime)


def of_others(error: ForeignOwner | DeletedEachTime) -> Waiting | Refused:
    """The wait or refusal: for a taken name until that object changes, for a contested one until a pause is over."""
    if isinstance(error, DeletedEachTime):
        return Waiting(CONTESTED, str(error), error.look_again)
    if error.is_former:
        return Waiting(FOREIGN_OWNER, str(error), TakenNames.LOOK_AGAIN)
    return Refused(FOREIGN_OWNER, str(error), TakenNames.LOOK_AGAIN)
