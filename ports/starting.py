"""How our programs start, and what Ctrl-C does to them before they say otherwise: it ends them, without a trace."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module


def start(program: str) -> int:
    """Import the module of a program and call its `main`; its exit code. Must be called in the main thread.

    Importing takes most of a second, in which Python would show where Ctrl-C met it. Who started the program may have
    it ignore Ctrl-C, as shells do in the background; that stays.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    main: Callable[[], int] = import_module(program).main
    return main()


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """While the block runs, Ctrl-C raises KeyboardInterrupt instead of ending the process that `start` has begun."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
