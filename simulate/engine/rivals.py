"""Insisting clients: they repeat for some time what the operator undoes (`kube.contests`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kube.contests import PACE
from kube.errors import Invalid, NotFound
from simulate.engine.hands import key_of, named, namespace_of

if TYPE_CHECKING:
    from simulate.engine.engine import Engine
    from simulate.engine.plan import Insists

_NOTICES_AFTER = 0.05
"""Seconds."""
_IN_TIME = 1.0
"""Seconds before they give up, within which the operator's report is recorded."""
_ROOM = 2
"""Writes beyond the allowed ones: others may have changed the object, too."""


class Rival:
    """One insisting client, which starts now."""

    def __init__(self, engine: Engine, event: Insists) -> None:
        self._engine = engine
        self._event = event
        self._resource, self._name = named(event.target)
        self._namespace = namespace_of(self._resource)
        self._version = -1
        self._until = engine.elapsed + event.seconds
        self._before = len(engine.calls)
        self._sent = 0
        self._said = ""
        engine.later(event.seconds - _IN_TIME, self._listen)
        self._insist()

    def look(self) -> None:
        """React to a possible change."""
        stored = self._engine.world.server.storage.get(str(self._resource), key_of(self._resource, self._name))
        if stored is None or stored.version == self._version or self._engine.elapsed >= self._until:
            return
        self._version = stored.version
        self._engine.later(_NOTICES_AFTER, self._insist)

    def wrong(self) -> Iterator[str]:
        """Violations: written too often, or without a report."""
        # an object that a client removed from the cache is looked for by creating it
        most = 2 * (PACE.at_once + int(self._event.seconds / PACE.first)) + _ROOM
        if self._sent > most:
            yield f"{self._event.target} was written {self._sent} times in {self._event.seconds:g} s, to no end"
        if self._sent > PACE.at_once + _ROOM and self._name not in self._said:
            yield f"{self._event.target} is contested, and the status says {self._said!r}"

    def _insist(self) -> None:
        admin = self._engine.admin
        try:
            if self._event.patch:
                body, inner = self._event.patch, self._event.subresource
                done = admin.patch(self._resource, self._name, self._namespace, body, subresource=inner)
                self._version = int(done.metadata.resource_version)
            else:
                admin.delete(self._resource, self._name, self._namespace, propagation="Background")
        except (Invalid, NotFound) as error:
            self._engine.note("fault", f"gives up: {error}")

    def _listen(self) -> None:
        progressing = self._engine.condition("Progressing")
        self._said = f"{progressing.get('reason')}: {progressing.get('message')}"
        whose, calls = f"{self._resource} {self._name}", self._engine.calls[self._before :]
        self._sent = sum(str(call.target) == whose for call in calls)
