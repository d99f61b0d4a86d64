"""Where controllers get events and caches from, as a port: informers in the process, stand-ins in simulation."""

from typing import Protocol

from informers.handlers import ResourceEventHandler
from kube.reading import Lister
from kube.resources import Resource

NO_RESYNC = 0.0
"""The resync period of handlers that tell of changes alone: what depends on time comes with the resync of owners."""


class Informer(Protocol):
    """Tells handlers what happens to one resource."""

    def add_event_handler(self, handler: ResourceEventHandler, resync_period: float | None = None) -> object:
        """Tell `handler` of everything there is and of everything that happens from now on.

        `resync_period` in seconds replaces the informer's own; 0: never.
        """

    def has_synced(self) -> bool:
        """Whether what there was at the start is known."""


class Informers(Protocol):
    """One informer per resource, made when first asked for; `SharedInformerFactory` is one."""

    def informer_for(self, resource: Resource) -> Informer:
        """The informer of a resource, the same at each call."""

    def lister_for(self, resource: Resource) -> Lister:
        """A lister of a resource; asking for it creates the informer."""
