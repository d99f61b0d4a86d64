"""External failures, reported as one sentence and an exit code; a defect of the program keeps its traceback."""

import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from kube.errors import ApiError
from ports.foreign_text import printable
from ports.starting import raising_interrupts
from ports.transport import TransportError

FAILED = 1
_INTERRUPTED = 130
"""128 and the number of SIGINT, as shells count."""
_READER_GONE = 141
"""128 and the number of SIGPIPE."""

_OF_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EBADF)
"""Errors of writing to the output, if no file is named."""


class Failure(Exception):
    """Raised if a command cannot do its work; the message gives what, why, and the way out."""

    code = FAILED
    """The exit code of the command."""


PROGRAM = "tidb-operator"


def plainly(command: Callable[[], int], program: str = PROGRAM) -> int:
    """Run a command; return its exit code, or after a failure print a sentence, prefixed with `program`, to stderr."""
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    try:
        with raising_interrupts():
            return _to_its_end(command)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _write_nowhere()
        return _READER_GONE
    except (Failure, ApiError, TransportError, OSError) as error:
        return _print(f"{program}: {_sentence(error)}", error.code if isinstance(error, Failure) else FAILED)


def _usable(stream: TextIO | None) -> TextIO:
    """The stream, which escapes what its encoding lacks; a null stream if the caller closed it."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _to_its_end(command: Callable[[], int]) -> int:
    """Run a command and flush its output before it counts as finished, even after SystemExit."""
    try:
        code = command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else FAILED
    sys.stdout.flush()
    return code


def _sentence(error: Exception) -> str:
    match error:
        case ApiError():
            return f"refused by the API server: {error.message}"
        case OSError(filename=None, errno=number) if number in _OF_OUTPUT:
            _write_nowhere()
            return f"can't write to standard output: {error.strerror}; make room, or send the output elsewhere"
        case OSError(filename=str(name)):
            return f"{name}: {error.strerror}"
    return str(error)


def _print(sentence: str, code: int) -> int:
    try:
        print(printable(sentence, lines=True), file=sys.stderr, flush=True)
    except OSError:
        _write_nowhere()
    return code


def _write_nowhere() -> None:
    """Drop output that could not be written, which the interpreter would write again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, number)
    os.close(nowhere)
