"""Permission to write, which a process has while its lease is valid (design.md 3.5, informers-workqueue.md LE-22).

A leader that was paused for longer than its lease may wake up in the middle of a sync. Immediately before each request
that changes something, in Kubernetes or in the data plane, the sender therefore asks the fence.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class LeaseExpired(Exception):
    """Raised when a write is attempted without a valid lease."""


class Fence(Protocol):
    """Guards writes."""

    def check(self) -> None:
        """Return if writing is allowed, else raise LeaseExpired."""


FenceOf = Callable[[str], Fence]
"""Returns the fence for the object `namespace/name`."""


class OpenFence:
    """Allows every write, for programs without a leader, e.g. tests and the sandbox."""

    def check(self) -> None: ...


def is_open(fence: Fence) -> bool:
    """True if writing is allowed now; for reports that only the leader makes."""
    try:
        fence.check()
    except LeaseExpired:
        return False
    return True


class Ownership(Fence, Protocol):
    """Assigns keys to this process. As a fence, it guards the key that the calling thread acts for.

    A key names an object (`namespace/name`), or several objects that must share a process.
    """

    def owns(self, key: str) -> bool:
        """True if this process acts for a key; otherwise another process does."""

    def acting_for(self, key: str) -> AbstractContextManager[None]:
        """Act for a key in this thread within the block; meanwhile the key stays with this process."""

    def fence_of(self, key: str) -> Fence:
        """The fence for a key."""


class SoleOwner:
    """Owns every key, behind one fence: for deployments in which one process at a time does all the work."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence

    def check(self) -> None:
        self._fence.check()

    def owns(self, _key: str) -> bool:
        """Return True: there is no other process."""
        return True

    @contextmanager
    def acting_for(self, _key: str) -> Iterator[None]:
        """Do nothing: there is no other process."""
        yield

    def fence_of(self, _key: str) -> Fence:
        """The one fence."""
        return self._fence
