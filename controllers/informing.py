"""The port through which controllers get events and caches: informers in production, stand-ins in the simulator."""

from typing import Protocol

from informers.handlers import ResourceEventHandler
from kube.reading import Lister
from kube.resources import Resource

NO_RESYNC = 0.0
"""The resync period of handlers that only need changes: the resync of owners covers everything that depends on time."""


class Informer(Protocol):
    """Notifies handlers of the changes of one resource."""

    def add_event_handler(self, handler: ResourceEventHandler, resync_period: float | None = None) -> object:
        """Notify `handler` of all existing objects and of every later change.

        `resync_period`, in seconds, replaces the informer's own; 0 turns resyncs off.
        """

    def has_synced(self) -> bool:
        """True if the initial list has arrived."""


class Informers(Protocol):
    """One informer per resource, created at the first call, e.g. `SharedInformerFactory`."""

    def informer_for(self, resource: Resource) -> Informer:
        """The informer of a resource, the same at each call."""

    def lister_for(self, resource: Resource) -> Lister:
        """A lister of a resource, whose informer is created if necessary."""
