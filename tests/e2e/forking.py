"""A process that has imported the operator, and forks at each start of one.

To import it takes half a second of CPU, more than the tests ask of most operators. What such a process does from there
on is the same as in one of `python -m controller_manager`, which other tests start: pods of Deployments, `tidb-operator
run`, and those that end with a mistake in the command line.
"""

import atexit
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import msgspec

from ports.clock import SystemClock
from ports.starting import start
from ports.stopping import Stop

_MODULE = "controller_manager.main"
_LOOK_EVERY = 0.02


class Start(msgspec.Struct, tag=True):
    """The request to start an operator that appends its log to `log`; the answer is its process id."""

    flags: list[str]
    environ: dict[str, str]
    directory: str
    log: str


class Look(msgspec.Struct, tag=True):
    """The question about the exit status of a process; the answer is None while it runs."""

    pid: int


class Forks:
    """The process that forks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        atexit.register(self._process.communicate)

    def ask(self, question: Start | Look) -> int | None:
        """The answer of the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(msgspec.json.encode(question) + b"\n")
            self._process.stdin.flush()
            return msgspec.json.decode(self._process.stdout.readline(), type=int | None)


@functools.cache
def forks() -> Forks:
    """One process for each test process."""
    return Forks()


class Forked:
    """A started operator, as `subprocess.Popen` has it."""

    def __init__(self, flags: tuple[str, ...], environ: Mapping[str, str], directory: Path, log: Path) -> None:
        pid = forks().ask(Start(list(flags), dict(environ), str(directory), str(log)))
        assert pid is not None
        self.pid = pid
        self._ended: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """The exit status; negative for a signal, None while it runs."""
        with self._lock:
            if self._ended is None:
                self._ended = forks().ask(Look(self.pid))
            return self._ended

    def send_signal(self, number: int) -> None:
        """Send a signal to a process that has not ended at the last check."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Wait for the exit status. Raises TimeoutExpired."""
        clock, stop = SystemClock(), Stop()
        end = clock.now() + timeout
        while (code := self.poll()) is None:
            if clock.now() > end:
                raise subprocess.TimeoutExpired(_MODULE, timeout)
            stop.wait(clock, _LOOK_EVERY)
        return code


def _serve() -> int:
    """Answer questions until there are no more; in a process that was forked, the operator's exit code."""
    import_module(_MODULE)
    gc.freeze()
    for line in sys.stdin.buffer:
        question = msgspec.json.decode(line, type=Start | Look)
        if isinstance(question, Look):
            pid, status = os.waitpid(question.pid, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif answer := os.fork():
            pass
        else:
            _become(question)
            return start(_MODULE)
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
    return 0


def _become(asked: Start) -> None:
    """Give a child its own arguments, environment, directory and output."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(asked.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(asked.environ)
    os.chdir(asked.directory)
    sys.argv[1:] = asked.flags


if __name__ == "__main__":
    sys.exit(_serve())
