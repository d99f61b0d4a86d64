"""Another process that writes the same status: a second operator, or the leader before us, not gone yet (FP9).

What the two see and say may differ in a word. Each write of one brings the other back, so without a pause they would
chase each other as fast as the API server answers.
"""

import hashlib
import threading
from dataclasses import dataclass

import msgspec

from kube.objects import Object
from ports.clock import Clock

PAUSE = 1.0
"""Seconds between our last write of a status and our next look at it, when somebody else has changed it."""


@dataclass(frozen=True, slots=True)
class _Written:
    status: bytes
    at: float


class Rivals:
    """What this process wrote last into each status. May be used by several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[str, _Written] = {}

    def wrote(self, written: Object) -> None:
        """Note what our write of a status has come to."""
        with self._lock:
            self._written[written.key] = _Written(_digest(written), self._clock.now())

    def pause(self, cached: Object) -> float:
        """Seconds to wait before this object is acted on; 0 when its status is as we have left it."""
        with self._lock:
            written = self._written.get(cached.key)
        left = written.at + PAUSE - self._clock.now() if written else 0.0
        return left if written and left > 0 and written.status != _digest(cached) else 0.0

    def forget(self, key: str) -> None:
        """Drop what is known of a key whose object is gone."""
        with self._lock:
            self._written.pop(key, None)


def _digest(cluster: Object) -> bytes:
    """The status without what our own pod controller writes."""
    status = cluster.decode().get("status") or {}
    (status.get("tikv") or {}).pop("evictLeader", None)
    return hashlib.sha256(msgspec.json.encode(status, order="sorted")).digest()
