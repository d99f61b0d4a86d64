"""What moves the world: actors, and the loop that runs one (design.md 3.2).

A step does everything that is due and never waits. The loop around it does the waiting: for a change of what the actor
watches, or for the time of its next due work.
"""

import threading
from collections.abc import Hashable
from typing import Protocol

import structlog

from kube.errors import ApiError
from ports.clock import Clock
from ports.stopping import Stop
from ports.transport import TransportError
from sandbox.notifier import Notifier

_log = structlog.get_logger(__name__)

_PAUSE = 0.5
"""Seconds before a step that was refused is tried again."""

_LONGEST_REST = 0.05
"""Seconds that an actor rests at most between two turns."""


class Actor(Protocol):
    """One built-in controller, the scheduler, the kubelet, the data plane."""

    @property
    def name(self) -> str:
        """The actor's name in threads and logs."""

    @property
    def watches(self) -> tuple[Hashable, ...]:
        """The topics of the notifier that wake it: resources, or the data plane."""

    def step(self) -> float | None:
        """Do everything due now; return the clock time of the next due work, or None.

        Raises ApiError, TransportError.
        """


class Runner:
    """Runs one actor, either turn by turn (`turn`) or in a thread of its own (`start`)."""

    def __init__(self, actor: Actor, clock: Clock, notifier: Notifier) -> None:
        self._actor = actor
        self._clock = clock
        self._notifier = notifier
        self._topics = tuple(actor.watches)
        self._seen = -1
        self._total = -1
        """What the notifier's total was when `_seen` was counted."""
        self._due: float | None = None
        self._turning = False
        self._thread: threading.Thread | None = None

    @property
    def due(self) -> float | None:
        """The clock time of the next due work, or None; also None for an actor that is waiting inside its step."""
        return None if self._turning else self._due

    def turn(self) -> bool:
        """Step the actor if something changed or is due; return whether it was stepped."""
        if self._turning:
            return False
        is_due = self._due is not None and self._due <= self._clock.now()
        total = self._notifier.total
        if total == self._total and not is_due:
            return False
        seen = self._notifier.count(self._topics)
        self._total = total
        if seen == self._seen and not is_due:
            return False
        self._seen = seen
        self._turning = True
        try:
            self._due = self._actor.step()
        except (ApiError, TransportError) as error:
            _log.debug("step refused", actor=self._actor.name, error=str(error))
            self._due = self._clock.now() + _PAUSE
        finally:
            self._turning = False
        return True

    def start(self, stop: Stop) -> None:
        """Run until `stop` is set."""
        self._thread = threading.Thread(target=self._run, args=(stop,), name=f"actor-{self._actor.name}", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end, after the stop was set."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, stop: Stop) -> None:
        while not stop.is_set():
            began = self._clock.now()
            try:
                self.turn()
            except Exception:
                # the boundary of the thread: one broken object must not end the actor for all others
                _log.exception("step failed", actor=self._actor.name)
                self._due = self._clock.now() + _PAUSE
            self._rest(self._clock.now() - began, stop)
            self._notifier.wait(self._topics, self._seen, self._due, stop)

    def _rest(self, seconds: float, stop: Stop) -> None:
        """As long as its turn took: the more there is to look at in each turn, the more changes it is for."""
        if seconds > 0:
            stop.wait(self._clock, min(seconds, _LONGEST_REST))
