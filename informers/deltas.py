"""The deltas that a reflector queues (informers-workqueue.md FIFO-1)."""

from dataclasses import dataclass
from typing import TypeAlias

from kube.objects import Object


@dataclass(frozen=True, slots=True)
class Added:
    """A watch event: the object was created."""

    obj: Object


@dataclass(frozen=True, slots=True)
class Updated:
    """A watch event: the object changed."""

    obj: Object


@dataclass(frozen=True, slots=True)
class Deleted:
    """A watch event: the object was deleted. `obj` is its last state, with the version of the deletion."""

    obj: Object


@dataclass(frozen=True, slots=True)
class ReplacedAll:
    """A list: all objects as of `resource_version`."""

    objects: tuple[Object, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class SyncAll:
    """A resync: handlers that are due receive every object again."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A bookmark: the watch has sent every change up to `resource_version`."""

    resource_version: str


Event: TypeAlias = Added | Updated | Deleted
"""A change of one object."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of different objects, in the order of their arrival, applied in one step (FIFO-11)."""

    events: tuple[Event, ...]


Delta: TypeAlias = Event | Batch | ReplacedAll | SyncAll | Bookmark
