"""Threads with names, waited for until they are gone (informers-workqueue.md 25.1, TEST-6)."""

import threading
from collections.abc import Callable, Iterable

import structlog

log = structlog.get_logger(__name__)


def start_thread(name: str, body: Callable[[], object]) -> threading.Thread:
    """Run `body` in a thread that the process waits for at its end."""
    thread = threading.Thread(target=body, name=name, daemon=False)
    thread.start()
    return thread


def join_all(threads: Iterable[threading.Thread], patience: float = 10.0) -> None:
    """Wait until all have ended, naming those that keep us waiting every `patience` real seconds."""
    for thread in threads:
        thread.join(patience)
        while thread.is_alive():
            log.warning("thread still running", thread=thread.name)
            thread.join(patience)
