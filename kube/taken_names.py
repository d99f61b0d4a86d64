"""Names of objects that no cache shows: those of others, and our own until the caches have caught up.

They are looked at live now and then, and neither made nor written over in every reconcile.
"""

from collections.abc import Callable
from typing import Final

from kube.errors import AlreadyExists, ApiError
from kube.objects import Object
from kube.resources import Resource
from ports.clock import Clock


class TakenNames:
    """Those of one cluster. For one thread at a time."""

    LOOK_AGAIN: Final = 30.0
    """Seconds until the next look. An object of others with our labels is cached, and its changes are events."""

    def __init__(self) -> None:
        self._taken: dict[tuple[Resource, str], tuple[Object, float]] = {}

    def make_or_find(
        self,
        resource: Resource,
        name: str,
        clock: Clock,
        *,
        make: Callable[[], Object],
        find: Callable[[], Object | None],
    ) -> tuple[Object, bool]:
        """Have an object made that no cache shows; what there is of its name, and whether it was made now.

        `find` looks live. What was made or found a moment ago is neither made nor looked at again. Raises what the two
        raise.
        """
        if there := self.last_seen(resource, name, clock):
            return there, False
        there, made = find() if (resource, name) in self._taken else None, False
        if there is None:
            try:
                there, made = make(), True
            except AlreadyExists:
                if (there := find()) is None:
                    raise
        self._note(resource, name, there, clock)
        return there, made

    def write(self, resource: Resource, there: Object, clock: Clock, write: Callable[[], Object]) -> Object:
        """Have an object written that no cache shows; as it is then. After an ApiError it is looked at again."""
        name = there.metadata.name
        try:
            written = write()
        except ApiError:
            self.forget(resource, name)
            raise
        if written is not there:
            self._note(resource, name, written, clock)
        return written

    def last_seen(self, resource: Resource, name: str, clock: Clock) -> Object | None:
        """The object that has the name, as long as that was seen a moment ago."""
        there, until = self._taken.get((resource, name), (None, 0.0))
        return there if clock.now() < until else None

    def forget(self, resource: Resource, name: str) -> None:
        """A cache shows who has the name, or a live look that nobody has."""
        self._taken.pop((resource, name), None)

    def _note(self, resource: Resource, name: str, there: Object, clock: Clock) -> None:
        self._taken[resource, name] = (there, clock.now() + self.LOOK_AGAIN)
