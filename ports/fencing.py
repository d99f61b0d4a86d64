"""May this process still write? (design.md 3.5, informers-workqueue.md LE-22)

A leader that was paused longer than its lease may wake up in the middle of a sync.
Towards Kubernetes as towards the data plane, the fence is asked immediately before a request that changes something.
"""

from typing import Protocol


class LeaseExpired(Exception):
    """Raised when a write is attempted without a locally valid lease."""


class Fence(Protocol):
    """Guards writes."""

    def check(self) -> None:
        """Return when writing is allowed. Raises LeaseExpired."""


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
