"""Common fixtures: every test must leave no thread behind (informers-workqueue.md TEST-6)."""

import gc
import os
import threading
from collections.abc import Generator, Iterator

import pytest
import structlog

from ports.clock import FakeClock
from tests.distribution import pytest_xdist_make_scheduler

__all__ = ["pytest_xdist_make_scheduler"]

_GRACE = 2.0
"""Seconds that stopped threads may take to end."""

_MANY_OBJECTS = 100_000
"""New ones, after which garbage is looked for."""

_MUCH_CPU = 5.0
"""Seconds of CPU: much more than a test takes that is not marked `slow` (setup.cfg)."""
_CPU = "cpu"


def pytest_configure() -> None:
    """Before the first test, too, is logged as in tests."""
    _log_plainly()


def pytest_collection_finish() -> None:
    """Exclude everything imported and collected so far from garbage collection.

    A world in memory is many objects, few of which become garbage before its end.
    """
    gc.freeze()
    gc.set_threshold(_MANY_OBJECTS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Measure the tests that are not marked as slow."""
    before = _cpu()
    yield
    if not any(item.get_closest_marker(mark) for mark in ("slow", "controlplane")):
        item.user_properties.append((_CPU, _cpu() - before))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that should be marked as slow, to keep `make check` quick; the speed of a machine fails no
    test."""
    passed = terminalreporter.getreports("passed")
    spent = [(seconds, each.nodeid) for each in passed for name, seconds in each.user_properties if name == _CPU]
    for seconds, test in sorted(set(spent), reverse=True):
        if seconds > _MUCH_CPU:
            terminalreporter.write_line(
                f"{test} took {seconds:.1f} s of CPU: make it cheaper, or mark it slow (CONTRIBUTING.md)"
            )


def _cpu() -> float:
    """Seconds of CPU that this process has spent, and those that it has waited for."""
    return sum(os.times()[:4])


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(_GRACE)
    left = sorted(thread.name for thread in set(threading.enumerate()) - before if thread.is_alive())
    assert left == [], f"threads left behind: {left}"


@pytest.fixture(autouse=True)
def _logs_as_they_were() -> Iterator[None]:
    """A test that configures logging does so for itself alone."""
    yield
    _log_plainly()
    structlog.contextvars.clear_contextvars()


def _log_plainly() -> None:
    """To draw a stack trace with all variables, as is the default, takes seconds."""
    structlog.reset_defaults()
    *before, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*before, plain])


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until stepped."""
    return FakeClock()
