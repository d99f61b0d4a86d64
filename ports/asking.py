"""The namespace that the current sync acts for, so that what servers send it is charged to that namespace."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ASKER: ContextVar[str] = ContextVar("the namespace that asks", default="")


@contextmanager
def asking_for(namespace: str) -> Iterator[None]:
    """Act for this namespace during the block, in helper threads as well (`ports.side_by_side`)."""
    before = _ASKER.set(namespace)
    try:
        yield
    finally:
        _ASKER.reset(before)


def asker() -> str:
    """The namespace that is acted for; empty outside of all syncs."""
    return _ASKER.get()
