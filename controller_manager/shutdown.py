"""The shutdown of the process: a first signal requests it, a second one forces it (informers-workqueue.md CW-10).

The signal handler itself does nothing: Python runs it in the main thread between two instructions, possibly inside a
critical section. The interpreter writes the signal's number to a socket, and a thread acts on it.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ports.lazy_log import get_logger
from ports.stopping import Stop

_log = get_logger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def stopping_on_signals(stop: Stop, exit_now: Callable[[int], object] = os._exit) -> Iterator[None]:
    """Within the block, the first signal sets `stop`, and a further one ends the process immediately with code 1.

    Enter it in the main thread.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    previous_fd = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    previous = {number: signal.signal(number, _do_nothing) for number in SIGNALS}
    thread = threading.Thread(target=_watch, args=(reader, stop, exit_now), name="signals")
    thread.start()
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_fd)
        writer.close()
        thread.join()
        reader.close()


def _watch(reader: socket.socket, stop: Stop, exit_now: Callable[[int], object]) -> None:
    """Act on signals until the writing end is closed."""
    asked = False
    while received := reader.recv(1):
        if received[0] not in SIGNALS:
            continue
        name = signal.Signals(received[0]).name
        if asked:
            _log.error("second signal, exiting at once", signal=name)
            exit_now(1)
            continue
        asked = True
        _log.info("signal received, shutting down", signal=name)
        # in a separate thread: if one of its callbacks hangs, a second signal must still be noticed
        threading.Thread(target=stop.set, name="stop").start()


def _do_nothing(_number: int, _frame: object) -> None:
    """Python writes the number only if a handler is set."""
