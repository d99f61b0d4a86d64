"""The initial list as the first part of a watch (informers-workqueue.md 11.5).

The server sends what there is as events, then a bookmark that says so, and the same stream goes on as the watch. That
spares the server large answers, and costs us: measured with 3,000 ConfigMaps of 6.5 KB on a real API server, 0.17 s of
CPU instead of 0.08 s for a list, 0.1 s more until synced, and the same peak memory. So it is off unless asked for.
"""

from types import MappingProxyType

from kube.objects import Object

REQUEST = MappingProxyType({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
"""What such a watch asks for, beside what every watch does (REF-40)."""

SILENCE = 30.0
"""Seconds without a byte after which a stream that is not complete never will be (REF-40e)."""

COMPLETE = 60.0
"""Seconds after which a stream that is not complete is given up, however many events arrive (REF-40e)."""

_END = "k8s.io/initial-events-end"


class InitialEvents:
    """What a stream has told so far; the cache sees it when it is complete (REF-40a)."""

    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}

    @property
    def objects(self) -> list[Object]:
        """What there is, as far as told."""
        return list(self._objects.values())

    def take(self, event_type: str, obj: Object) -> bool:
        """Note an event; return whether it says that nothing is missing any more."""
        if event_type == "BOOKMARK":
            return obj.metadata.annotations.get(_END) == "true"
        if event_type == "DELETED":
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj
        return False
