"""A status that goes back and forth is written now and then only (I29).

A node that comes and goes takes the status of what runs on it to what it was before, again and again, and each time
that would be a write for every cluster that has a pod there. What is new is written at once; what has been there lately
has to wait for its turn, once it is seen to come and go. If it is gone until then, nobody has missed anything.
"""

import hashlib
from collections import OrderedDict, deque

import msgspec

from kube.objects import Json
from ports.clock import Clock

LATELY = 600.0
"""Seconds for which a status is remembered."""

OFTEN = 3
"""Returns to an earlier status, in that time, that no operation needs."""

APART = 5.0
"""Seconds within which several returns are one: much happens at once when something starts."""

EVERY = 20.0
"""Seconds between two writes of a status that goes back and forth."""


_REMEMBERED = 64


class StatusFlaps:
    """What the status of one object has been lately. For one thread at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._returns: deque[float] = deque()

    def pause(self, status: Json) -> float:
        """Seconds until a status may be written; 0 when it may be now."""
        self._forget()
        shape = _shape(status)
        if len(self._returns) < OFTEN or shape not in self._seen:
            return 0.0
        return max(next(reversed(self._seen.values())) + EVERY - self._clock.now(), 0.0)

    def wrote(self, status: Json) -> None:
        """Note a write."""
        now, shape = self._clock.now(), _shape(status)
        is_return = shape in self._seen and shape != next(reversed(self._seen))
        if is_return and (not self._returns or now - self._returns[-1] >= APART):
            self._returns.append(now)
        self._seen[shape] = now
        self._seen.move_to_end(shape)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def _forget(self) -> None:
        before = self._clock.now() - LATELY
        while self._returns and self._returns[0] <= before:
            self._returns.popleft()
        while self._seen and next(iter(self._seen.values())) <= before:
            self._seen.popitem(last=False)


def _shape(status: Json) -> bytes:
    """A status without its sentences, times and counts, which differ each time."""
    return hashlib.sha256(msgspec.json.encode(_without_detail(status), order="sorted")).digest()


def _without_detail(value: object) -> object:
    if isinstance(value, list):
        return [_without_detail(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: each for key, each in value.items() if key != "message" and not key.lower().endswith(("time", "count"))
    }
    return {key: _without_detail(each) for key, each in kept.items()}
