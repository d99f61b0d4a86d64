"""Growing pauses of things that have names (informers-workqueue.md RL-10)."""

import threading
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from ports.clock import Clock
from ports.randomness import Randomness

K = TypeVar("K", bound=Hashable)


class _Pause(NamedTuple):
    seconds: float
    updated: float


class KeyedBackoff(Generic[K]):
    """Doubles the pause of a key with each event: initial, 2*initial, ... up to `max_pause` seconds.

    A pause that was last updated more than twice `max_pause` ago has expired. Times are the clock's `now()`.
    """

    def __init__(
        self, clock: Clock, randomness: Randomness, initial: float, max_pause: float, *, jitter: float = 0.0
    ) -> None:
        """`jitter` lengthens each pause by a random part of up to that share of the one before (0.1: a tenth)."""
        self._clock = clock
        self._randomness = randomness
        self._initial = initial
        self._max_pause = max_pause
        self._jitter = jitter
        self._lock = threading.Lock()
        self._pauses: dict[K, _Pause] = {}

    def next(self, key: K, event_time: float) -> float:
        """Something happened to `key` at `event_time`: return its new pause, in seconds, which begins now."""
        with self._lock:
            known = self._current(key, event_time)
            before, doubled = (known.seconds, known.seconds * 2) if known else (self._initial, self._initial)
            seconds = min(doubled + self._randomness.uniform(0.0, self._jitter) * before, self._max_pause)
            self._pauses[key] = _Pause(seconds, self._clock.now())
            return seconds

    def is_in_backoff_since_update(self, key: K, at: float) -> bool:
        """Whether the pause of `key` lasts at the time `at`."""
        with self._lock:
            pause = self._current(key, at)
            return pause is not None and at - pause.updated < pause.seconds

    def reset(self, key: K) -> None:
        """Forget `key`: its next pause is the initial one."""
        with self._lock:
            self._pauses.pop(key, None)

    def gc(self) -> None:
        """Drop what has expired; for somebody to call from time to time."""
        with self._lock:
            now = self._clock.now()
            self._pauses = {key: pause for key, pause in self._pauses.items() if not self._expired(pause, now)}

    def __len__(self) -> int:
        """How many keys are remembered."""
        with self._lock:
            return len(self._pauses)

    def _current(self, key: K, now: float) -> _Pause | None:
        pause = self._pauses.get(key)
        return None if pause is None or self._expired(pause, now) else pause

    def _expired(self, pause: _Pause, now: float) -> bool:
        return now - pause.updated > 2 * self._max_pause
