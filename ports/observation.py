"""Observe-only work: decisions are reported but not carried out (docs/migration.md).

A sync declares such work with `observing`, and code that would act checks `is_observing`. The declaration holds for the
current thread.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_ONLY: ContextVar[bool] = ContextVar("only_observing", default=False)


@contextlib.contextmanager
def observing(only: bool) -> Iterator[None]:
    """If `only` is True, work in the block must not change anything outside the process."""
    token = _ONLY.set(only)
    try:
        yield
    finally:
        _ONLY.reset(token)


def is_observing() -> bool:
    """True if the current work must not change anything."""
    return _ONLY.get()


def always() -> bool:
    """Return True, for a process that only observes."""
    return True
