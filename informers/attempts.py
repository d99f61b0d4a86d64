"""The parts of a reflector's attempt: the list as a stream, the errors with a meaning of their own, and the delay.

With a streamed list (informers-workqueue.md 11.5) the server sends every object as an event, then a bookmark that ends
the list, and continues the stream as the watch. This spares the server large answers but costs the client. 3,000
ConfigMaps of 6.5 KB from a real API server take 0.17 s of CPU instead of 0.08 s for a list, and sync 0.1 s later. Peak
memory is the same. Streaming is therefore off by default.
"""

from types import MappingProxyType

from kube.errors import ApiError, ServerTimeout, TooManyRequests
from kube.objects import Object
from ports.clock import Clock
from ports.pace import Pace
from ports.randomness import Randomness

_TOO_LARGE = "Too large resource version"
"""The message of servers that send no cause for this error."""

_PACE = Pace(0.8, 30.0)
"""The delays, without their random factor."""
_QUIET = 120.0
"""Seconds without a call of `next` after which the sequence starts again."""

STREAM_REQUEST = MappingProxyType({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
"""Query parameters of a watch that begins with a streamed list, beside the usual ones (REF-40)."""
STREAM_SILENCE = 30.0
"""Seconds without a byte after which the reflector gives up an incomplete stream (REF-40e)."""
STREAM_COMPLETE = 60.0
"""Seconds after which the reflector gives up an incomplete stream, however many events arrive (REF-40e)."""
_END = "k8s.io/initial-events-end"


def is_too_many_requests(error: Exception) -> bool:
    """True if the server sheds load (REF-21)."""
    return isinstance(error, TooManyRequests) or (isinstance(error, ApiError) and error.code == 429)


def is_too_large(error: Exception) -> bool:
    """True if the server has not reached the requested version yet (REF-13)."""
    if not isinstance(error, ApiError):
        return False
    causes = error.details.causes
    if any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
        return True
    return isinstance(error, ServerTimeout) and (
        _TOO_LARGE in error.message or any(_TOO_LARGE in cause.message for cause in causes)
    )


class Backoff:
    """Growing delays of one reflector: 0.8 s, doubling up to 30 s, each multiplied by a random factor in [1, 2)."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness
        self._drawn = 0
        self._drawn_at = clock.now()

    def next(self) -> float:
        """The next delay in seconds. After two minutes without a call the sequence starts again (REF-41)."""
        now = self._clock.now()
        self._drawn = 1 if now - self._drawn_at > _QUIET else self._drawn + 1
        self._drawn_at = now
        return _PACE.after(self._drawn) * self._randomness.uniform(1.0, 2.0)


class InitialEvents:
    """The objects of an incomplete stream; they reach the cache when it is complete (REF-40a)."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}

    @property
    def objects(self) -> list[Object]:
        """The objects received so far."""
        return list(self._objects.values())

    def take(self, event_type: str, obj: Object) -> bool:
        """Record an event; True if it ends the initial list."""
        if event_type == "BOOKMARK":
            return obj.metadata.annotations.get(_END) == "true"
        if event_type == "DELETED":
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj
        return False
