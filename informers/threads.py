"""Threads with names, joined by their owner (informers-workqueue.md 25.1, TEST-6)."""

import threading
from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger(__name__)


def start_thread(name: str, body: Callable[[], object]) -> threading.Thread:
    """Run `body` in a thread that its owner joins.

    The thread is a daemon: a program whose main thread fails, or whose handler blocks for good, still ends.
    """
    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()
    return thread


def join_all(threads: Iterable[threading.Thread], patience: float = 10.0) -> None:
    """Wait until all threads have ended; log the name of the one waited for every `patience` real seconds."""
    for thread in threads:
        thread.join(patience)
        while thread.is_alive():
            log.warning("thread still running", thread=thread.name)
            thread.join(patience)
