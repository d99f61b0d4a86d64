"""Periodic resyncs: handlers receive every stored object again (informers-workqueue.md INF-25 to INF-29, REF-50).

Every `check_period` seconds an informer checks which handlers are due. A resync sends no request to the server.
"""

from dataclasses import dataclass

import structlog

from ports.clock import Clock

log = structlog.get_logger(__name__)

_MINIMUM = 1.0


@dataclass(slots=True)
class Turn:
    """The resyncs of one handler: the period in seconds (0: never), the time of the next, and whether it is due now."""

    period: float
    next_at: float
    due: bool = True
    """A new handler counts as due until the first check (INF-26)."""


class ResyncSchedule:
    """The turns of all handlers of one informer. Not thread-safe: the informer guards it."""

    def __init__(self, clock: Clock, default_period: float) -> None:
        """`default_period`, in seconds, applies to handlers without a period of their own; 0 means never."""
        self._clock = clock
        self._default = _at_least_minimum(default_period)
        self._turns: list[Turn] = []
        self._started = False
        self.check_period = self._default
        self.next_check: float | None = None
        """The time of the next check; None means never."""

    def start(self) -> None:
        """Begin to check. Handlers admitted later do not shorten the check period. Idempotent."""
        if not self._started:
            self._started = True
            self._plan()

    def admit(self, period: float | None) -> Turn:
        """Add a handler, with its own period or the default."""
        seconds = self._settled(self._default if period is None else _at_least_minimum(period))
        turn = Turn(seconds, self._clock.now() + seconds)
        self._turns.append(turn)
        return turn

    def remove(self, turn: Turn) -> None:
        """Remove a handler."""
        self._turns = [other for other in self._turns if other is not turn]

    def is_check_due(self) -> bool:
        """True if the next check is due."""
        return self.next_check is not None and self._clock.now() >= self.next_check

    def check(self) -> bool:
        """Decide which handlers are due; True if any is (INF-28)."""
        now = self._clock.now()
        self._plan()
        for turn in self._turns:
            turn.due = turn.period > 0 and now >= turn.next_at
            if turn.due:
                turn.next_at = now + turn.period
        return any(turn.due for turn in self._turns)

    def _plan(self) -> None:
        self.next_check = self._clock.now() + self.check_period if self.check_period else None

    def _settled(self, wanted: float) -> float:
        if not wanted:
            return 0.0
        if not self.check_period:
            log.warning("the informer never resyncs, so the handler does not either", wanted=wanted)
            return 0.0
        if wanted >= self.check_period:
            return wanted
        if self._started:
            log.warning("handler resyncs less often than requested", wanted=wanted, gets=self.check_period)
            return self.check_period
        self.check_period = wanted
        return wanted


def _at_least_minimum(period: float) -> float:
    if not period or period >= _MINIMUM:
        return period
    log.warning("resync period raised to the minimum", wanted=period, gets=_MINIMUM)
    return _MINIMUM
