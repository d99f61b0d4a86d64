"""May this process still write? (design.md 3.5, informers-workqueue.md LE-22)

A leader that was paused longer than its lease may wake up in the middle of a sync.
Towards Kubernetes as towards the data plane, the fence is asked immediately before a request that changes something.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class LeaseExpired(Exception):
    """Raised when a write is attempted without a locally valid lease."""


class Fence(Protocol):
    """Guards writes."""

    def check(self) -> None:
        """Return when writing is allowed. Raises LeaseExpired."""


FenceOf = Callable[[str], Fence]
"""What guards writes for the object `namespace/name`."""


class OpenFence:
    """Lets every write pass: for programs that need no leader, such as tests and the sandbox."""

    def check(self) -> None:
        """Return."""


def is_open(fence: Fence) -> bool:
    """Whether writing is allowed right now: for what only the leader tells."""
    try:
        fence.check()
    except LeaseExpired:
        return False
    return True


class Ownership(Fence, Protocol):
    """Which keys are this process's to act for; the fence of whichever key the calling thread acts for.

    A key is that of an object, `namespace/name`, or of several that must have one process.
    """

    def owns(self, key: str) -> bool:
        """Whether this process acts for a key; another one does where it does not."""

    def acting_for(self, key: str) -> AbstractContextManager[None]:
        """Act for a key in this thread while the block runs: the key is given to nobody else meanwhile."""

    def fence_of(self, key: str) -> Fence:
        """What guards writes for a key."""


class SoleOwner:
    """Owns every key: where one process at a time does everything, behind one fence."""

    def __init__(self, fence: Fence) -> None:
        self._fence = fence

    def check(self) -> None:
        """See `Fence`."""
        self._fence.check()

    def owns(self, _key: str) -> bool:
        """Always."""
        return True

    @contextmanager
    def acting_for(self, _key: str) -> Iterator[None]:
        """Nobody else acts for anything."""
        yield

    def fence_of(self, _key: str) -> Fence:
        """The one there is."""
        return self._fence
