"""A local port that leads to a pod: `kubectl port-forward` as a process."""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cli.failures import Failure

HOST = "127.0.0.1"
_FORWARDS = re.compile(rf"Forwarding from {re.escape(HOST)}:(\d+) -> ")
_CONNECTED = "Handling connection for "
"""The start of the line that kubectl prints for each connection."""
_PATIENCE = 5.0
"""Seconds in which kubectl ends when asked to."""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A running `kubectl port-forward`. `port` is the local one; `complaints` the file with its stderr."""

    port: int
    process: subprocess.Popen[str]
    complaints: Path

    @property
    def failure(self) -> str:
        """A sentence if it has ended by itself; empty while it runs."""
        return _complaint(self.process, self.complaints) if self.process.poll() is not None else ""


@contextmanager
def tunnel(
    target: Sequence[str], port: int, place: Path, connected: Callable[[], None] = lambda: None
) -> Iterator[Tunnel]:
    """Forward a free local port to a `port` of a pod within the block.

    `target` are kubectl's arguments that name the pod, with its flags. `place` is a directory for a file. A thread
    calls `connected` at each connection. Raises Failure if kubectl is missing or cannot reach the pod.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise Failure("kubectl, which forwards the port, is not on PATH")
    complaints = place / "kubectl"
    complaints.touch(0o600)
    command = [kubectl, "port-forward", f"--address={HOST}", *target, f":{port}"]
    # a session of its own: Ctrl-C at the terminal is for the SQL client
    with (
        complaints.open("w", encoding="utf-8") as errors,
        subprocess.Popen(  # noqa: S603 - no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            lines = iter(process.stdout)
            local = _local_port(lines)
            if local is None:
                process.wait()
                raise Failure(f"kubectl cannot forward a port: {_complaint(process, complaints)}")
            listener = threading.Thread(target=_listen, args=(lines, connected), name="port-forward", daemon=True)
            listener.start()
            try:
                yield Tunnel(local, process, complaints)
            finally:
                _end(process)
                listener.join()
        finally:
            _end(process)


def _local_port(lines: Iterable[str]) -> int | None:
    """The port that kubectl chose; None if it ends without one."""
    return next((int(match[1]) for line in lines if (match := _FORWARDS.match(line))), None)


def _listen(lines: Iterable[str], connected: Callable[[], None]) -> None:
    for line in lines:
        if line.startswith(_CONNECTED):
            connected()


def _complaint(process: subprocess.Popen[str], complaints: Path) -> str:
    """The last line that kubectl printed on stderr, without its prefix; else its exit code."""
    lines = complaints.read_text("utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return last.removeprefix("error: ").removeprefix("Error from server: ") or f"exit code {process.returncode}"


def _end(process: subprocess.Popen[str]) -> None:
    """End kubectl and what it has started."""
    for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, None)):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(patience)
