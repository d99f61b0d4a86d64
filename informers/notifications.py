"""The notifications that handlers receive."""

from dataclasses import dataclass
from typing import TypeAlias

from informers.tombstones import LastKnown
from kube.objects import Object


@dataclass(frozen=True, slots=True)
class Add:
    """An object is new to the handler."""

    obj: Object
    is_in_initial_list: bool


@dataclass(frozen=True, slots=True)
class Update:
    """An object changed, was listed again, or is told again by a resync (INF-22)."""

    old: Object
    new: Object

    @property
    def is_sync(self) -> bool:
        """Whether nothing changed, so that only handlers due for a resync care (INF-25)."""
        return self.old.metadata.resource_version == self.new.metadata.resource_version


@dataclass(frozen=True, slots=True)
class Delete:
    """An object is gone."""

    obj: LastKnown


Notification: TypeAlias = Add | Update | Delete
