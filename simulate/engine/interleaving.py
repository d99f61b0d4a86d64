"""Actors that take turns: each has its own thread, of which exactly one runs (design.md 3.2).

An actor is a loop over a step. The driver resumes one actor, which runs until it yields: at a preemption point after
its time slice, or to wait for time. The next actor and its slice are drawn from a seed, so a seed determines a run.
Outside of actors a preemption point does nothing.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.lock_step import Ended, LockStep

_T = TypeVar("_T")

Step = Callable[[], bool]
"""Does all pending work and returns True if there was any. Waits only through `Interleaver.wait`."""

_LONGEST_SLICE = 6
"""A time slice is a power of two up to this one: from strict alternation to a whole sync between two calls."""


class _Actor:
    """A loop; `due` is the clock time at which its wait ends."""

    def __init__(self, name: str, step: Step) -> None:
        self.time_slice = 0
        self.due = 0.0
        self._step = step
        self._worked = False
        self.turns = LockStep(name, self._run)

    def resume(self) -> bool:
        """Run it until it yields; True if it did anything. Raises its exceptions."""
        self._worked = True
        self.turns.resume()
        return self._worked

    def _run(self) -> None:
        while True:
            self._worked = self._step()
            if self.turns.ending:
                break
            self.turns.yield_control()


class Interleaver:
    """The actors of some processes, and the scheduler of their turns."""

    def __init__(self, clock: Clock, draws: Randomness) -> None:
        self._clock = clock
        self._draws = draws
        self._actors: dict[str, list[_Actor]] = {}
        self._running: _Actor | None = None

    def add(self, process: str, steps: Iterable[Step]) -> None:
        """Start the loops of a process."""
        self._actors[process] = [_Actor(f"{process}-{number}", step) for number, step in enumerate(steps, 1)]

    def end(self, process: str) -> None:
        """Unwind the loops of a process; the calling one unwinds at its next preemption point. Idempotent."""
        for actor in self._actors.pop(process, ()):
            if actor is self._running:
                actor.turns.ending = True
            else:
                self._with(actor, actor.turns.end)

    def end_all(self) -> None:
        """Unwind all loops; no thread is left."""
        for process in list(self._actors):
            self.end(process)

    def turn(self) -> bool:
        """Run one actor with pending work for a time slice; True if there was one."""
        now = self._clock.now()
        able = [
            actor for actors in self._actors.values() for actor in actors if actor.due <= now and not actor.turns.ending
        ]
        while able:
            actor = able.pop(self._draws.integer(0, len(able) - 1))
            actor.time_slice = 2 ** self._draws.integer(0, _LONGEST_SLICE)
            if self._with(actor, actor.resume):
                return True
        return False

    def next_due(self) -> float | None:
        """When the first wait ends, on the clock; None without waits."""
        now = self._clock.now()
        return min((actor.due for actors in self._actors.values() for actor in actors if actor.due > now), default=None)

    def preemption_point(self) -> None:
        """Let others run. Raises Ended."""
        actor = self._running
        if actor is None:
            return
        if actor.turns.ending:
            raise Ended
        actor.time_slice -= 1
        if actor.time_slice <= 0:
            actor.turns.yield_control()

    def wait(self, seconds: float) -> bool:
        """Let others run until the time has passed; False outside of actors. Raises Ended."""
        actor = self._running
        if actor is None:
            return False
        actor.due, actor.time_slice = self._clock.now() + seconds, 0
        self.preemption_point()
        return True

    def _with(self, actor: _Actor, act: Callable[[], _T]) -> _T:
        before, self._running = self._running, actor
        try:
            return act()
        finally:
            self._running = before
