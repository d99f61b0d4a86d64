"""Names that others have taken: objects that no cache shows are looked at now and then, and never written over."""

from typing import Final

from kube.objects import Object
from kube.resources import Resource
from ports.clock import Clock


class TakenNames:
    """Those of one cluster. For one thread at a time."""

    LOOK_AGAIN: Final = 30.0
    """Seconds until the next look at an object of others. One with our labels is cached, and its changes are events."""

    def __init__(self) -> None:
        self._taken: dict[tuple[Resource, str], tuple[Object, float]] = {}

    def is_taken(self, resource: Resource, name: str) -> bool:
        """Whether an object of others had the name at the last look."""
        return (resource, name) in self._taken

    def last_seen(self, resource: Resource, name: str, clock: Clock) -> Object | None:
        """The object that has the name, as long as that was seen a moment ago."""
        there, until = self._taken.get((resource, name), (None, 0.0))
        return there if clock.now() < until else None

    def note(self, resource: Resource, name: str, there: Object | None, clock: Clock) -> None:
        """Note what a look has found: an object of others, or that the name is free."""
        if there is None:
            self._taken.pop((resource, name), None)
        else:
            self._taken[resource, name] = (there, clock.now() + self.LOOK_AGAIN)
