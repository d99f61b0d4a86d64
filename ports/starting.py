"""The start of the project's programs. Until a program handles Ctrl-C itself, it ends the process without a
traceback. A crash of the interpreter, and SIGABRT, print the stacks of all threads.
"""

import faulthandler
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

_ALLOCATIONS = 50_000
"""The number of new containers before the next garbage collection.

Modules and JSON trees leave no cycles behind: with Python's 700, collections take a tenth of the CPU of a plan.
"""


def start(program: str) -> int:
    """Import a program's module, call its `main` and return the exit code. Call it in the main thread.

    The import takes most of a second, in which Ctrl-C would make Python print a traceback. If the parent process made
    the program ignore Ctrl-C, as shells do for background jobs, the program keeps ignoring it.
    """
    gc.set_threshold(_ALLOCATIONS)
    if sys.stderr:
        faulthandler.enable()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    main: Callable[[], int] = import_module(program).main
    return main()


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """Within the block, Ctrl-C raises KeyboardInterrupt instead of ending the process."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
