"""Work that only looks: what it decides is reported, and not done (docs/migration.md).

A sync says whether it is such work; whoever could do something asks. It holds for the thread that says so.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_ONLY: ContextVar[bool] = ContextVar("only_observing", default=False)


@contextlib.contextmanager
def observing(only: bool) -> Iterator[None]:
    """What runs inside does nothing to the outside, if `only`."""
    token = _ONLY.set(only)
    try:
        yield
    finally:
        _ONLY.reset(token)


def is_observing() -> bool:
    """Whether the work at hand may change nothing."""
    return _ONLY.get()


def always() -> bool:
    """For a process that only observes."""
    return True
