"""Actors that take turns: each has a thread of its own, but of all threads exactly one runs (design.md 3.2).

An actor is a loop over a step. Whoever drives the actors resumes one of them, which runs until it yields: at a
preemption point when its time slice is used up, or because it waits for time. Who runs next, and for how long a slice,
is drawn from a seed: one seed, one run. Where no actor runs, a preemption point does nothing.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.lock_step import Ended, LockStep

_T = TypeVar("_T")

Step = Callable[[], bool]
"""Does what there is to do, and answers whether there was something. Never waits but through `Interleaver.wait`."""

_LONGEST_SLICE = 6
"""A time slice is a power of two up to this one: now everybody in turn, now a whole sync between two calls."""


class _Actor:
    """One loop; `due` is when its wait is over, on the clock."""

    def __init__(self, name: str, step: Step) -> None:
        self.time_slice = 0
        self.due = 0.0
        self._step = step
        self._worked = False
        self.turns = LockStep(name, self._run)

    def resume(self) -> bool:
        """Let it run until it yields; return whether it did anything. Raises what its step raises."""
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
    """The actors of some processes, and who of them runs."""

    def __init__(self, clock: Clock, draws: Randomness) -> None:
        self._clock = clock
        self._draws = draws
        self._actors: dict[str, list[_Actor]] = {}
        self._running: _Actor | None = None

    def add(self, process: str, steps: Iterable[Step]) -> None:
        """Have the loops of a process run from now on."""
        self._actors[process] = [_Actor(f"{process}-{number}", step) for number, step in enumerate(steps, 1)]

    def end(self, process: str) -> None:
        """Unwind the loops of a process; the one that says so unwinds at its next preemption point. Idempotent."""
        for actor in self._actors.pop(process, ()):
            if actor is self._running:
                actor.turns.ending = True
            else:
                self._with(actor, actor.turns.end)

    def end_all(self) -> None:
        """Unwind all; no thread is left."""
        for process in list(self._actors):
            self.end(process)

    def turn(self) -> bool:
        """Let one that has something to do run for a time slice; return whether there was one."""
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
        """When the first wait is over, on the clock; None when nobody waits."""
        now = self._clock.now()
        return min((each.due for actors in self._actors.values() for each in actors if each.due > now), default=None)

    def preemption_point(self) -> None:
        """Others may run here. Raises Ended."""
        actor = self._running
        if actor is None:
            return
        if actor.turns.ending:
            raise Ended
        actor.time_slice -= 1
        if actor.time_slice <= 0:
            actor.turns.yield_control()

    def wait(self, seconds: float) -> bool:
        """Let others run until that time has passed; False where no actor runs. Raises Ended."""
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
