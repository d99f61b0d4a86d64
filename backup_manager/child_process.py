"""Child processes as an argument: BR and the other tools, whose output is read as it arrives."""

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Protocol, TypeAlias

from ports.stopping import Stop

OnLine: TypeAlias = Callable[[str, bool], None]
"""Receives each line, and whether it is from stderr."""

_LONGEST_LINE = 1 << 20
"""The number of bytes after which a line is split."""


class CannotStart(Exception):
    """Raised if a program does not exist or cannot be executed."""


class Launcher(Protocol):
    """Runs programs."""

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:
        """Run a program to its end; return its exit code, negative for the signal that ended it.

        `stop` sends it SIGTERM and waits for its end. Raises CannotStart.
        """


class SystemLauncher:
    """Runs programs on this machine. Implements `Launcher`."""

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:
        try:
            process = subprocess.Popen(  # noqa: S603  (a list of words; no shell reads them)
                command,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            why = f"{error.strerror}; is the init container's volume mounted?"
            raise CannotStart(f"cannot start {command[0]}: {why}") from error
        with process, stop.calling(lambda: _end(process)):
            try:
                _read(process.stdout, process.stderr, on_line)
            except BaseException:
                # its output is no longer read: a surviving program would write to a database or bucket unnoticed
                process.kill()
                raise
            return process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)


def _read(stdout: IO[bytes] | None, stderr: IO[bytes] | None, on_line: OnLine) -> None:
    """Pass on lines of both streams as they arrive, until both have ended."""
    with selectors.DefaultSelector() as selector:
        for stream, is_error in ((stdout, False), (stderr, True)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, _Lines(on_line, is_error=is_error))
        while selector.get_map():
            for key, _ in selector.select():
                content = os.read(key.fd, 1 << 16)
                key.data.feed(content)
                if not content:
                    selector.unregister(key.fileobj)


class _Lines:
    """Splits arriving bytes into lines."""

    def __init__(self, on_line: OnLine, *, is_error: bool) -> None:
        self._on_line = on_line
        self._is_error = is_error
        self._rest = b""

    def feed(self, content: bytes) -> None:
        """Pass on complete lines; without content, also the last one."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        if self._rest and (not content or len(self._rest) > _LONGEST_LINE):
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._on_line(line.decode("utf-8", "replace").rstrip("\r"), self._is_error)
