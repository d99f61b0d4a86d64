"""Actors on one mirror, each in its own thread, or turn by turn in the caller's."""

from collections.abc import Callable, Iterable, Sequence

from ports.clock import Clock, FakeClock
from ports.stopping import Stop
from sandbox.actor import Actor, Runner
from sandbox.mirror import History, Mirror
from sandbox.notifier import Notifier

_SYNC = 30.0
_LEAP = 1e-6
"""The shortest step of the clock in seconds; smaller differences of floats may vanish."""
_TURNS = 1000
"""Rounds at one instant after which restless actors count as a defect."""


class NeverSettles(Exception):
    """Raised if actors do not come to rest at one instant, or a condition does not become true in time."""


class ActorSystem:
    """Runs actors. `history` is what the API server stores, if that runs in this process."""

    def __init__(
        self,
        clock: Clock,
        notifier: Notifier,
        mirror: Mirror,
        actors: Iterable[Actor],
        history: History | None = None,
    ) -> None:
        self._clock = clock
        self._notifier = notifier
        self._mirror = mirror
        self._runners = [Runner(actor, clock, notifier) for actor in actors]
        self._history = history

    def start(self, stop: Stop) -> None:
        """Threads for the mirror and for every actor. Raises TimeoutError when the API cannot be listed."""
        self._mirror.start(stop)
        self._mirror.wait_for_sync(_SYNC)
        for runner in self._runners:
            runner.start(stop)

    def join(self) -> None:
        """Wait for all threads, after the stop was set."""
        for runner in self._runners:
            runner.join()
        self._mirror.join()

    @property
    def due(self) -> float | None:
        """The clock time of the next due work, or None."""
        return min((due for runner in self._runners if (due := runner.due) is not None), default=None)

    def turn(self) -> bool:
        """Give a turn to every actor with work at this instant; True if any had work."""
        self._mirror.poll(self._history)
        turned = False
        for runner in self._runners:
            # this asks twenty actors at each event: a call for each would take longer than their work
            if runner.total != self._notifier.total or (runner.due is not None and runner.due <= self._clock.now()):
                turned |= runner.turn()
        return turned


def settle(systems: Sequence[ActorSystem], clock: Clock) -> None:
    """Let all actors work at this instant; also ends when an actor has moved the clock by waiting.

    Raises NeverSettles.
    """
    instant = clock.now()
    for _ in range(_TURNS):
        turned = [actor_system.turn() for actor_system in systems]
        if not any(turned) or clock.now() > instant:
            return
    raise NeverSettles(f"the actors do not come to rest at {instant} s")


def advance(
    systems: Sequence[ActorSystem], clock: FakeClock, seconds: float, until: Callable[[], bool] | None = None
) -> bool:
    """Move time forward event by event; stop early when `until` returns True, and return its result."""
    end = clock.now() + seconds
    while True:
        settle(systems, clock)
        if until is not None and until():
            return True
        due = min((due for actor_system in systems if (due := actor_system.due) is not None), default=end)
        if min(due, end) > clock.now():
            clock.step(max(min(due, end) - clock.now(), _LEAP))
        if clock.now() >= end:
            settle(systems, clock)
            return until is not None and until()
