"""Threads with names, joined by their owner (informers-workqueue.md 25.1, TEST-6)."""

import threading
from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger(__name__)


def start_thread(name: str, body: Callable[[], object]) -> threading.Thread:
    """Run `body` in a thread, which the caller joins.

    The thread is a daemon: a program ends although its main thread failed or a handler blocks forever.
    """
    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()
    return thread


def join_all(threads: Iterable[threading.Thread], patience: float = 10.0) -> None:
    """Wait until all threads have ended; every `patience` real seconds, log the name of the thread that has not."""
    for thread in threads:
        thread.join(patience)
        while thread.is_alive():
            log.warning("thread still running", thread=thread.name)
            thread.join(patience)
