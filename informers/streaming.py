"""The initial list as the first part of a watch (informers-workqueue.md 11.5).

The server sends every object as an event, then a bookmark that ends the list, and continues the stream as the watch.
This spares the server large answers but costs the client. 3,000 ConfigMaps of 6.5 KB from a real API server take 0.17 s
of CPU instead of 0.08 s for a list, and sync 0.1 s later. Peak memory is the same. Streaming is therefore off by
default.
"""

from types import MappingProxyType

from kube.objects import Object

REQUEST = MappingProxyType({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
"""Query parameters of such a watch, beside the usual ones (REF-40)."""

SILENCE = 30.0
"""Seconds without a byte after which the reflector gives up an incomplete stream (REF-40e)."""

COMPLETE = 60.0
"""Seconds after which the reflector gives up an incomplete stream, however many events arrive (REF-40e)."""

_END = "k8s.io/initial-events-end"


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
