"""What the stages of one object wait for, in the log: the begin and the end of each wait, once.

A stage that is at something, such as a roll, waits for one thing after another until nothing is left to do. What it
waits for first is told at once, whatever else takes long as soon as that is known; the end tells how long each of them
took. A failure is told when trying again has not helped. What stays until something else happens - a refusal, or a
failover whose substitutes serve - is told by itself. What begins again and again, since a server comes and goes, is
told a few times, and then only if it lasts. With -v=4 every change of the sentence shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog

from member.outcome import DONE, Done, Failed, Outcome, Refused, Waiting
from ports.clock import Clock

_log = structlog.get_logger(__name__)

_LONG = 10.0
"""Seconds after which what holds up a stage in the middle of its work is told."""

_OFTEN = 3
"""Times that the same may begin again right after it has ended before that is told instead."""

_CALM = 60.0
"""Seconds of rest after which a wait is news, and of waiting after which it is told all the same."""

_Standing: TypeAlias = Refused | Waiting


@dataclass(slots=True)
class _Stage:
    """What one stage is at; `spent` are the seconds, by reason, since it began to wait, `told` the reasons told."""

    outcome: Outcome = field(default_factory=Done)
    looked: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    standing: _Standing | None = None
    stands_since: float = 0.0


@dataclass(slots=True)
class _Habit:
    """What a stage has waited for last, until when, and how often it has begun with that again within a minute."""

    reason: str = ""
    ended: float = 0.0
    again: int = 0

    def begin(self, reason: str, now: float) -> None:
        """Note the begin of a wait."""
        is_again = reason == self.reason and now - self.ended < _CALM
        self.reason, self.again = reason, self.again + 1 if is_again else 0

    def hushes(self, stage: "_Stage") -> bool:
        """Whether the stage waits too often to tell it."""
        return self.again >= _OFTEN and sum(stage.spent.values()) < _CALM


class WaitLog:
    """Tells the waits of one object. For one thread at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stages: dict[str, _Stage] = {}
        self._habits: dict[str, _Habit] = {}

    def note(self, outcomes: Mapping[str, Outcome]) -> None:
        """Tell what has begun or ended since the last look. Costs next to nothing while all is done.

        A stage that does not answer goes on waiting; what it refused to do, it does not refuse any more.
        """
        silent = [name for name, stage in self._stages.items() if name not in outcomes and not stage.told]
        for name, outcome in [*outcomes.items(), *((name, Done()) for name in silent)]:
            if name in self._stages or not isinstance(outcome, Done):
                self._note(name, self._stages.setdefault(name, _Stage()), outcome, self._clock.now())

    def _note(self, name: str, stage: _Stage, outcome: Outcome, now: float) -> None:
        before, stage.outcome = stage.outcome, outcome
        if before.reason in stage.spent:
            stage.spent[before.reason] += now - stage.looked
        stage.looked = now
        if isinstance(outcome, Failed) or (isinstance(outcome, Waiting) and not outcome.serves):
            habit = self._habits.setdefault(name, _Habit())
            if not stage.spent:
                self._begin(name, habit, outcome.reason, now)
            _wait(name, stage, outcome, before, hushed=habit.hushes(stage))
            return
        if stage.spent:
            self._habits[name].ended = now
        if stage.told:
            waited = {reason: round(seconds, 1) for reason, seconds in stage.spent.items()}
            _log.info("wait ended", stage=name, seconds=round(sum(stage.spent.values()), 1), waited=waited)
        stage.spent, stage.told = {}, set()
        _stand(name, stage, None if isinstance(outcome, Done) else outcome, now)
        if stage.standing is None:
            del self._stages[name]

    def _begin(self, name: str, habit: _Habit, reason: str, now: float) -> None:
        habit.begin(reason, now)
        if habit.again == _OFTEN:
            _log.info("waiting again and again: told only if it lasts, until it rests", stage=name, reason=reason)


def _wait(name: str, stage: _Stage, outcome: Waiting | Failed, before: Outcome, *, hushed: bool) -> None:
    reason, is_failing = outcome.reason, isinstance(outcome, Failed)
    is_known = reason == before.reason if is_failing else not stage.told
    if not hushed and reason not in stage.told and (is_known or stage.spent.get(reason, 0.0) >= _LONG):
        stage.told.add(reason)
        log, what = (_log.warning, "failing") if is_failing else (_log.info, "waiting")
        log(what, stage=name, reason=reason, message=outcome.message)
    elif outcome.message != before.message:
        _log.debug("still waiting", stage=name, reason=reason, message=outcome.message)
    stage.spent.setdefault(reason, 0.0)


def _stand(name: str, stage: _Stage, standing: _Standing | None, now: float) -> None:
    before, stage.standing = stage.standing, standing
    if (before.reason if before else DONE) == (standing.reason if standing else DONE):
        return
    if before is not None:
        what = "no longer refused" if isinstance(before, Refused) else "wait ended"
        _log.info(what, stage=name, reason=before.reason, seconds=round(now - stage.stands_since, 1))
    if standing is not None:
        stage.stands_since = now
        is_refused = isinstance(standing, Refused)
        log, what = (_log.warning, "refused") if is_refused else (_log.info, "waiting while all serve")
        log(what, stage=name, reason=standing.reason, message=standing.message)
