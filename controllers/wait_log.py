"""Log lines about the waits of one object's stages: one at the beginning and one at the end of each wait.

During an operation such as a roll, a stage waits for one thing after another. The log shows the first reason at once
and each later reason after ten seconds; the last line shows how long each reason took. A failure is logged when the
first retry fails as well. Refusals, and waits while all members serve (for example after a failover), have lines of
their own. A wait that recurs often, because a server fails and recovers, is logged a few times, and then only if it
lasts. With -v=4 every change of a message is logged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog

from member.outcome import DONE, Done, Failed, Outcome, Refused, Waiting
from ports.clock import Clock

_log = structlog.get_logger(__name__)

_LONG = 10.0
"""Seconds after which a further reason of a wait is logged."""

_OFTEN = 3
"""The number of times that a wait may recur within _CALM before the log suppresses it."""

_CALM = 60.0
"""Seconds without a wait after which the next one is logged again; also the duration from which any wait is logged."""

_Standing: TypeAlias = Refused | Waiting


@dataclass(slots=True)
class _Stage:
    """The state of one stage: `spent` is the seconds of the current wait by reason, `logged` the reasons in the log."""

    outcome: Outcome = field(default_factory=Done)
    looked: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    logged: set[str] = field(default_factory=set)
    standing: _Standing | None = None
    stands_since: float = 0.0


@dataclass(slots=True)
class _Habit:
    """The last wait of a stage: its reason, its end, and how often it recurred within _CALM of the end before."""

    reason: str = ""
    ended: float = 0.0
    again: int = 0

    def begin(self, reason: str, now: float) -> None:
        """Note the begin of a wait."""
        is_again = reason == self.reason and now - self.ended < _CALM
        self.reason, self.again = reason, self.again + 1 if is_again else 0

    def hushes(self, stage: "_Stage") -> bool:
        """True if the wait recurs too often to be logged."""
        return self.again >= _OFTEN and sum(stage.spent.values()) < _CALM


class WaitLog:
    """Logs the waits of one object. Not thread-safe.

    A node that comes and goes costs 20 lines in two minutes, not 32 as without the limit (bench/memories.json).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stages: dict[str, _Stage] = {}
        self._habits: dict[str, _Habit] = {}

    def note(self, outcomes: Mapping[str, Outcome]) -> None:
        """Log the waits that have begun or ended since the last call. Cheap while all stages are done.

        A stage without an outcome counts as still waiting if its wait was logged, and as done otherwise.
        """
        silent = [name for name, stage in self._stages.items() if name not in outcomes and not stage.logged]
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
        if stage.logged:
            waited = {reason: round(seconds, 1) for reason, seconds in stage.spent.items()}
            _log.info("wait ended", stage=name, seconds=round(sum(stage.spent.values()), 1), waited=waited)
        stage.spent, stage.logged = {}, set()
        _stand(name, stage, None if isinstance(outcome, Done) else outcome, now)
        if stage.standing is None:
            del self._stages[name]

    def _begin(self, name: str, habit: _Habit, reason: str, now: float) -> None:
        habit.begin(reason, now)
        if habit.again == _OFTEN:
            _log.info("waiting again and again: logged only if it lasts, until it rests", stage=name, reason=reason)


def _wait(name: str, stage: _Stage, outcome: Waiting | Failed, before: Outcome, *, hushed: bool) -> None:
    reason, is_failing = outcome.reason, isinstance(outcome, Failed)
    is_known = reason == before.reason if is_failing else not stage.logged
    if not hushed and reason not in stage.logged and (is_known or stage.spent.get(reason, 0.0) >= _LONG):
        stage.logged.add(reason)
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
