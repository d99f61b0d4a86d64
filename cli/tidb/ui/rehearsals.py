"""Rehearsals of the page: `kubectl tidb plan` and `drill` in a process of their own, with the same connection.

A rehearsal computes for seconds and forks, which a server of several threads must not do itself.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from cli.failures import Failure
from kube.objects import Json
from ports.lazy_log import get_logger
from ports.structs import UNREADABLE

Rehearse: TypeAlias = Callable[[Sequence[str]], Json]
"""Runs a command, such as `plan tc/basic`, and returns its document. Raises Failure if it prints none."""

IN_LOG = "the log of the command that serves this page says more"

_PATIENCE = 300.0
"""Seconds after which a rehearsal is given up."""
_DEFECT = "Traceback (most recent call last):"

_log = get_logger(__name__)


class Rehearsals:
    """Runs one command at a time; `flags` say how it finds the API server."""

    def __init__(self, flags: Sequence[str]) -> None:
        self._flags = flags
        self._turn = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def __call__(self, arguments: Sequence[str]) -> Json:
        """See `Rehearse`."""
        command = [sys.executable, "-m", "cli.tidb", *arguments, *self._flags, "--output=json"]
        with self._turn:
            if self._is_over:
                raise Failure("the command that serves this page is ending")
            try:
                printed, complaint = self._run(command)
            except OSError as error:
                raise Failure(f"this machine cannot start the rehearsal: {error.strerror}") from None
        if not printed:
            raise Failure(_sentence(complaint))
        try:
            document: Json = msgspec.json.decode(printed)
        except UNREADABLE as error:
            _log.error("a rehearsal printed no document", command=arguments, printed=printed, complaint=complaint)
            raise Failure(f"the rehearsal printed no document ({error}); {IN_LOG}") from None
        return document

    def _run(self, command: Sequence[str]) -> tuple[bytes, str]:
        """What a command prints to stdout and to stderr. Raises Failure if it does not end, OSError."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - no shell
            self._running = process
            try:
                printed, complaint = process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Failure(f"the rehearsal has not ended after {_PATIENCE:.0f} s") from None
        return printed, complaint.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the rehearsal that runs, and refuse further ones."""
        self._is_over = True
        if self._running is not None:
            self._running.terminate()


def _sentence(complaint: str) -> str:
    """Why a rehearsal prints nothing. A defect has a stack, of which a user needs the last line."""
    if _DEFECT not in complaint:
        return complaint.removeprefix("kubectl tidb: ") or "the rehearsal was interrupted"
    _log.error("a rehearsal has a defect", complaint=complaint)
    return f"the rehearsal has a defect: {complaint.splitlines()[-1]}; {IN_LOG}"
