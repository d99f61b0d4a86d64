"""The memory of a process for each key between reconciles, in one place, so that all of it is deleted with the key."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controllers.cache_waits import CacheWaits
from controllers.own_write import OwnWrite
from controllers.status_pacing import StatusPacing
from controllers.unknown_fields import UnknownFields
from controllers.validity import Validity
from controllers.wait_log import WaitLog
from kube.failure_log import FailureLog
from kube.objects import Object

T = TypeVar("T")
R = TypeVar("R")


class Memory(Generic[T]):
    """A value for each key, created at the first access. Each key must be used by one thread at a time."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[str, T] = {}

    def of(self, key: str) -> T:
        """The value of a key, created if necessary."""
        if key not in self._values:
            self._values[key] = self._make()
        return self._values[key]

    def find(self, key: str) -> T | None:
        """The value of a key, None if there is none."""
        return self._values.get(key)

    def forget(self, key: str) -> None:
        """Delete the value of a key."""
        self._values.pop(key, None)

    def keep(self, is_wanted: Callable[[str], bool]) -> None:
        """Delete the values of all keys for which `is_wanted` is False. No thread may be using these keys."""
        for key in list(self._values):
            if not is_wanted(key):
                self.forget(key)


@dataclass(slots=True)
class KeyMemory(Generic[R]):
    """A reconciler's memory of one object. After each field: what a restart of the operator costs."""

    kind: R
    """The memory that the kind defines, such as `member.memory.ClusterMemory`."""
    status_pacing: StatusPacing
    """A fluctuating status is written a few times at once."""
    waits: WaitLog
    """The waits of the present are logged once more, and their durations begin again."""
    slowness: FailureLog
    """The slowness of servers is logged once more."""
    own_write: OwnWrite = field(default_factory=OwnWrite)
    """One reconcile may see an older cache; preconditions reject its writes."""
    validity: Validity = field(default_factory=Validity)
    """The spec is validated once more. Without it a reconcile at rest costs 2,100 calls, not 1,200."""
    unknown_fields: UnknownFields = field(default_factory=UnknownFields)
    """The spec is compared with the types of Kubernetes once more. Without it that costs 2,000 calls."""
    cache_waits: CacheWaits = field(default_factory=CacheWaits)
    """Stages that wait for a cache are tried again soon."""
    reported_spec: bytes = b""
    """Identifies the invalid spec that an event has reported; empty if the spec is valid. Lost: one event is
    repeated."""
    is_slow: bool = False
    """True if servers of the object did not answer in time. Lost: the next reconcile is not in the slow lane."""
    accepted: Object | None = None
    """The object with its last valid spec. Lost: while the spec is invalid, what the operator wrote last counts."""
