"""Calls in a separate thread, awaited with a deadline."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

DEADLINE = 5.0
"""Real seconds after which a test that waits fails."""


def in_background(call: Callable[[], T]) -> Future[T]:
    """Start `call` and return its result to come: `future.result(DEADLINE)`."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="background").start()
    return future
