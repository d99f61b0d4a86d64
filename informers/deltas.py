"""What the reflector learned, one event each (informers-workqueue.md FIFO-1)."""

from dataclasses import dataclass
from typing import TypeAlias

from kube.objects import Object


@dataclass(frozen=True, slots=True)
class Added:
    """The watch says an object was created."""

    obj: Object


@dataclass(frozen=True, slots=True)
class Updated:
    """The watch says an object changed."""

    obj: Object


@dataclass(frozen=True, slots=True)
class Deleted:
    """The watch says an object is gone; `obj` is its last state, with the deletion's version."""

    obj: Object


@dataclass(frozen=True, slots=True)
class ReplacedAll:
    """A list says what there is, as of `resource_version`."""

    objects: tuple[Object, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class SyncAll:
    """It is time to tell handlers of everything again."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to `resource_version` has been told."""

    resource_version: str


Event: TypeAlias = Added | Updated | Deleted
"""What happened to one object."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of different objects, in the order in which they came, to be applied in one step (FIFO-11)."""

    events: tuple[Event, ...]


Delta: TypeAlias = Event | Batch | ReplacedAll | SyncAll | Bookmark
