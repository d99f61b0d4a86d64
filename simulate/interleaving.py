"""Actors that take turns: each has a thread of its own, but of all threads exactly one runs (design.md 3.2).

An actor is a loop over a step. Whoever drives the actors resumes one of them, which runs until it yields: at a
preemption point when its time slice is used up, or because it waits for time. Who runs next, and for how long a slice,
is drawn from a seed: one seed, one run. Where no actor runs, a preemption point does nothing.
"""

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from ports.clock import Clock
from ports.randomness import Randomness

_T = TypeVar("_T")

Step = Callable[[], bool]
"""Does what there is to do, and answers whether there was something. Never waits but through `Interleaver.wait`."""

_LONGEST_SLICE = 6
"""A time slice is a power of two up to this one: now everybody in turn, now a whole sync between two calls."""


class Ended(BaseException):
    """Unwinds an actor whose process is gone; nothing of it may catch this."""


class _Actor:
    """One loop. Its thread begins with the first `resume`; `due` is when its wait is over, on the clock."""

    def __init__(self, name: str, step: Step) -> None:
        self.time_slice = 0
        self.due = 0.0
        self.ending = False
        self._step = step
        self._worked = False
        self._error: BaseException | None = None
        self._resumed, self._yielded = threading.Lock(), threading.Lock()
        self._resumed.acquire()
        self._yielded.acquire()
        self._thread = threading.Thread(target=self._run, name=name)

    def resume(self) -> bool:
        """Let it run until it yields; return whether it did anything. Raises what its step raises."""
        if not self._thread.ident:
            self._thread.start()
        self._worked = True
        self._resumed.release()
        self._yielded.acquire()
        if self.ending:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._worked

    def yield_control(self) -> None:
        """In its own thread, and not when it is ending: let others run until it is resumed. Raises Ended."""
        self._yielded.release()
        self._resumed.acquire()
        if self.ending:
            raise Ended

    def end(self) -> None:
        """Unwind it, wherever it waits."""
        self.ending = True
        if self._thread.is_alive():
            self.resume()

    def _run(self) -> None:
        self._resumed.acquire()
        try:
            while True:
                self._worked = self._step()
                if self.ending:
                    break
                self.yield_control()
        except Ended:
            pass
        except BaseException as error:
            self._error, self.ending = error, True
        self._yielded.release()


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
                actor.ending = True
            else:
                self._with(actor, actor.end)

    def end_all(self) -> None:
        """Unwind all; no thread is left."""
        for process in list(self._actors):
            self.end(process)

    def turn(self) -> bool:
        """Let one that has something to do run for a time slice; return whether there was one."""
        now = self._clock.now()
        able = [actor for actors in self._actors.values() for actor in actors if actor.due <= now and not actor.ending]
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
        if actor.ending:
            raise Ended
        actor.time_slice -= 1
        if actor.time_slice <= 0:
            actor.yield_control()

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
