"""Names of objects that no cache shows: foreign objects, and new ones until the caches have caught up.

The operator reads such an object live every half minute, instead of trying to create it in every reconcile.
"""

from collections.abc import Callable
from typing import Final

from kube.actions import Apply, Decision
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, Object
from kube.resources import Resource
from ports.clock import Clock


class TakenNames:
    """The taken names of one owner. Not thread-safe."""

    LOOK_AGAIN: Final = 30.0
    """Seconds until the next live read. A foreign object with the operator's labels is cached instead."""

    def __init__(self) -> None:
        self._taken: dict[tuple[Resource, str], tuple[Object, float]] = {}

    async def make_or_find(
        self,
        resource: Resource,
        name: str,
        clock: Clock,
        *,
        make: Callable[[], Decision[Object]],
        find: Callable[[], Object | None],
    ) -> tuple[Object, bool]:
        """Create an object that no cache shows, unless it exists: the object, and True if it was created.

        `find` reads live. An object created or found within `LOOK_AGAIN` is returned without a request. Raises what
        `make` and `find` raise.
        """
        if there := self.last_seen(resource, name, clock):
            return there, False
        there, made = find() if (resource, name) in self._taken else None, False
        if there is None:
            try:
                there, made = await make(), True
            except AlreadyExists:
                if (there := find()) is None:
                    raise
        self._note(resource, name, there, clock)
        return there, made

    async def write(
        self, resource: Resource, desired: Json, there: Object, clock: Clock, applied: Json | None
    ) -> Object:
        """Patch the differences in an object that no cache shows; return the result. Forgets the object after an
        ApiError. For `applied` see `Applier.apply`.
        """
        name = there.metadata.name
        try:
            written = await Apply(resource, desired, there, applied)
        except ApiError:
            self.forget(resource, name)
            raise
        if written is not there:
            self._note(resource, name, written, clock)
        return written

    def last_seen(self, resource: Resource, name: str, clock: Clock) -> Object | None:
        """The object with this name, if it was seen within `LOOK_AGAIN`."""
        there, until = self._taken.get((resource, name), (None, 0.0))
        return there if clock.now() < until else None

    def forget(self, resource: Resource, name: str) -> None:
        """Forget the name: a cache shows its object, or a live read found none."""
        self._taken.pop((resource, name), None)

    def _note(self, resource: Resource, name: str, there: Object, clock: Clock) -> None:
        self._taken[resource, name] = (there, clock.now() + self.LOOK_AGAIN)
