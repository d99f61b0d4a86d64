"""What a stage answers: done, or not yet, and why - in one sentence a user can act on (design.md 3.3).

A wait is a value, not an exception: the sync shows it as a condition and goes on with the stages that do not depend
on it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

DONE = "Done"
"""The condition reason when there is nothing to do."""

CONTESTED = "Contested"
"""The condition reason where others undo what the operator writes (`kube.contests`)."""

SOONEST, LATEST = 0.5, 10.0
"""Seconds until the next look at a wait that has just begun, and at one that has lasted for long."""
_PART = 0.1
"""The pause before the next look, as a share of how long the wait has lasted."""


@dataclass(frozen=True, slots=True)
class Done:
    """The stage found everything as wanted; `reason` says so in another way where that is not all.

    `retry_after`, in seconds, is when the time alone makes that untrue: no event tells of it.
    """

    message: str = ""
    reason: str = DONE
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The stage can't go on yet, and that is expected.

    `reason` is a condition reason (CamelCase), `message` a sentence that says what for. `retry_after` is in seconds;
    None means that an event triggers the next reconcile. `serves`: all that is wanted is there; what else is waited for
    is said first.
    """

    reason: str
    message: str
    retry_after: float | None = None
    serves: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The stage won't do what the spec asks for; only the user can change that. Nothing was written for it.

    `retry_after`, in seconds, is for what goes on beside it.
    """

    reason: str
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """What should have worked did not: an answer was missing, or a request was refused. Retried with back-off.

    With `retry_after`, in seconds, it is retried then instead, and nothing else waits for longer because of it.
    """

    reason: str
    message: str
    retry_after: float | None = None


NotDone: TypeAlias = Waiting | Refused | Failed
"""Why something does not go on in this reconcile."""

Outcome: TypeAlias = Done | NotDone


def poll_interval(age: float) -> float:
    """Seconds until the next look at a wait that has lasted `age` seconds; negative if the clock was set back."""
    return max(SOONEST, min(_PART * abs(age), LATEST))


def first_retry(outcomes: Iterable[Outcome]) -> float | None:
    """Seconds until the first of them asks to be looked at again; None when none does."""
    delays = (each.retry_after for each in outcomes)
    return min(filter(None, delays), default=None)


def in_time_for(outcome: Outcome, *untold: Outcome) -> Outcome:
    """The outcome that is told, looked at again as soon as one that is not told beside it asks for.

    A failure with a back-off keeps that.
    """
    if isinstance(outcome, Failed) and outcome.retry_after is None:
        return outcome
    return replace(outcome, retry_after=first_retry((outcome, *untold)))


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do but wait, for what; `seconds` when it is known for how long."""

    what: str
    seconds: float | None = None
