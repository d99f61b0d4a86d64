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
    """An object changed, or a relist or resync repeats it (INF-22)."""

    old: Object
    new: Object

    @property
    def is_sync(self) -> bool:
        """True if the version is unchanged; then only handlers that are due for a resync receive it (INF-25)."""
        return self.old.metadata.resource_version == self.new.metadata.resource_version


@dataclass(frozen=True, slots=True)
class Delete:
    """An object is gone."""

    obj: LastKnown


Notification: TypeAlias = Add | Update | Delete
