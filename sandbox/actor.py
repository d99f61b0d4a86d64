"""Actors, which move the world, and the loop that runs one (design.md 3.2).

A step does all work that is due and never waits. The loop around it waits for a change of the watched topics, or for
the time of the next due work.
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
"""Seconds before a refused step is repeated."""

_LONGEST_REST = 0.05
"""The longest rest of an actor between two turns, in seconds."""


class Actor(Protocol):
    """A controller, the scheduler, the kubelet or the data plane."""

    @property
    def name(self) -> str:
        """The actor's name in threads and logs."""

    @property
    def watches(self) -> tuple[Hashable, ...]:
        """The topics of the notifier that wake the actor: resources, or the data plane."""

    def step(self) -> float | None:
        """Do all due work; return the clock time of the next due work, or None.

        Raises ApiError, TransportError.
        """


class Runner:
    """Runs one actor, turn by turn (`turn`) or in its own thread (`start`)."""

    def __init__(self, actor: Actor, clock: Clock, notifier: Notifier) -> None:
        self._actor = actor
        self._clock = clock
        self._notifier = notifier
        self._topics = tuple(actor.watches)
        self._seen = -1
        self.total = -1
        """The notifier's total when `_seen` was counted."""
        self.due: float | None = None
        """The clock time of the next due work, or None; also None while the actor waits inside its step."""
        self._turning = False
        self._thread: threading.Thread | None = None

    def turn(self) -> bool:
        """Step the actor if something has changed or is due; True if it was stepped."""
        total, due = self._notifier.total, self.due
        is_due = due is not None and due <= self._clock.now()
        if (total == self.total and not is_due) or self._turning:
            return False
        seen = self._notifier.count(self._topics)
        self.total = total
        if seen == self._seen and not is_due:
            return False
        self._seen = seen
        self._turning, self.due = True, None
        try:
            self.due = self._actor.step()
        except (ApiError, TransportError) as error:
            _log.debug("step refused", actor=self._actor.name, error=str(error))
            self.due = self._clock.now() + _PAUSE
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
                self.due = self._clock.now() + _PAUSE
            self._rest(self._clock.now() - began, stop)
            self._notifier.wait(self._topics, self._seen, self.due, stop)

    def _rest(self, seconds: float, stop: Stop) -> None:
        """Rest as long as the turn took: the more work a turn has, the more changes it should cover."""
        if seconds > 0:
            stop.wait(self._clock, min(seconds, _LONGEST_REST))
