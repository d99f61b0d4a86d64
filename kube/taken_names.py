"""Names of objects that no cache shows: foreign objects, and new ones until the caches have caught up.

The operator reads such an object live every half minute, instead of trying to create it in every reconcile.
"""

from collections.abc import Callable
from typing import Final

from kube.actions import Apply, Decision
from kube.errors import AlreadyExists, ApiError
from kube.objects import Json, Object
from kube.resources import Resource
from ports.ageing import Ageing
from ports.clock import Clock


class TakenNames:
    """The taken names of one owner. Not thread-safe.

    Without them half a minute of silent caches costs a new cluster 615 reads, not 96 (bench/memories.json).
    """

    LOOK_AGAIN: Final = 30.0
    """Seconds until the next live read. A foreign object with the operator's labels is cached instead."""

    def __init__(self) -> None:
        self._taken: Ageing[tuple[Resource, str], Object] = Ageing()

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
        is_known = self._taken.get((resource, name)) is not None
        there, made = find() if is_known else None, False
        if there is None:
            try:
                there, made = await make(), True
            except AlreadyExists:
                if (there := find()) is None:
                    raise
        self._taken.note((resource, name), there, clock.now())
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
            self._taken.note((resource, name), written, clock.now())
        return written

    def last_seen(self, resource: Resource, name: str, clock: Clock) -> Object | None:
        """The object with this name, if it was seen within `LOOK_AGAIN`."""
        known = self._taken.entry((resource, name))
        return known.value if known and known.is_fresh(clock.now(), self.LOOK_AGAIN) else None

    def forget(self, resource: Resource, name: str) -> None:
        """Forget the name: a cache shows its object, or a live read found none."""
        self._taken.drop((resource, name))
