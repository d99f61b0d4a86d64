"""What one process remembers of a key from one reconcile to the next, in one place, so that all of it is forgotten."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controllers.cache_waits import CacheWaits
from controllers.own_write import OwnWrite
from controllers.status_pacing import StatusPacing
from controllers.status_write_limiter import StatusWriteLimiter
from controllers.unknown_fields import UnknownFields
from controllers.validity import Validity
from controllers.wait_log import WaitLog
from kube.failure_log import FailureLog
from kube.objects import Object

T = TypeVar("T")
R = TypeVar("R")


class Memory(Generic[T]):
    """A value for each key, made when first asked for. A key is with one thread at a time."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[str, T] = {}

    def of(self, key: str) -> T:
        """What is remembered of a key."""
        if key not in self._values:
            self._values[key] = self._make()
        return self._values[key]

    def find(self, key: str) -> T | None:
        """What is remembered of a key, None when nothing is."""
        return self._values.get(key)

    def forget(self, key: str) -> None:
        """Remember nothing of a key any more."""
        self._values.pop(key, None)

    def keep(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget all keys but those that are wanted. No thread may be at work on the others."""
        for key in list(self._values):
            if not is_wanted(key):
                self.forget(key)


@dataclass(slots=True)
class KeyMemory(Generic[R]):
    """What a reconciler remembers of one object.

    `kind` is what the kind itself asks to remember. `reported_spec` is which invalid spec was reported last, empty
    when it is valid. `is_slow`: servers of it did not answer soon, which `slowness` tells. `accepted` is the object as
    it was last valid.
    """

    kind: R
    status_writes: StatusWriteLimiter
    status_pacing: StatusPacing
    waits: WaitLog
    slowness: FailureLog
    own_write: OwnWrite = field(default_factory=OwnWrite)
    validity: Validity = field(default_factory=Validity)
    unknown_fields: UnknownFields = field(default_factory=UnknownFields)
    cache_waits: CacheWaits = field(default_factory=CacheWaits)
    reported_spec: bytes = b""
    is_slow: bool = False
    accepted: Object | None = None
