"""A map whose entries have an age: what a process remembers for a while. Losing all of it must cost only time.

Reading changes nothing, so a thread may read while another one writes. Writers need a lock of their own.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Entry(Generic[V]):
    """A value with the times, in monotonic seconds, of the first note of its key and of the last one."""

    value: V
    since: float
    at: float

    def is_fresh(self, now: float, seconds: float) -> bool:
        """True if the last note is less than `seconds` old."""
        return now < self.at + seconds


class Ageing(Generic[K, V]):
    """Values by key, the one noted longest ago first. Time is an argument; a map without `lasts` needs none."""

    def __init__(self, lasts: float = inf, most: float = inf) -> None:
        """An entry without a note for `lasts` seconds is forgotten, and the oldest beyond `most` entries."""
        self._lasts, self._most = lasts, most
        self._entries: OrderedDict[K, Entry[V]] = OrderedDict()

    def entry(self, key: K, now: float = 0.0) -> Entry[V] | None:
        """The entry of a key, None if it is unknown or forgotten."""
        found = self._entries.get(key)
        return None if found is None or now - found.at >= self._lasts else found

    def get(self, key: K, now: float = 0.0) -> V | None:
        """The value of a key, None if it is unknown or forgotten."""
        found = self._entries.get(key)
        return None if found is None or now - found.at >= self._lasts else found.value

    def note(self, key: K, value: V, now: float = 0.0) -> Entry[V]:
        """Set the value of a key. Its entry becomes the newest, and stays as old as its first note."""
        return self._put(key, value, self.entry(key, now), now)

    def touch(self, key: K, make: Callable[[], V], now: float = 0.0) -> Entry[V]:
        """Note a key with its value, or with the result of `make` if it has none."""
        known = self.entry(key, now)
        return self._put(key, known.value if known else make(), known, now)

    def drop(self, key: K) -> V | None:
        """Forget a key at once; the value that it had."""
        known = self._entries.pop(key, None)
        return known.value if known else None

    def newest(self) -> K | None:
        """The key of the last note, None in an empty map."""
        return next(reversed(self._entries), None)

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, key: K, value: V, known: Entry[V] | None, now: float) -> Entry[V]:
        entry = self._entries[key] = Entry(value, known.since if known else now, now)
        self._entries.move_to_end(key)
        while len(self._entries) > self._most or now - next(iter(self._entries.values())).at >= self._lasts:
            self._entries.popitem(last=False)
        return entry
