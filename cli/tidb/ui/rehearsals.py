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

Rehearse: TypeAlias = Callable[[Sequence[str]], Json]
"""Runs a command, such as `plan tc/basic`, and returns its document. Raises Failure if it prints none."""

_PATIENCE = 300.0
"""Seconds after which a rehearsal is given up."""


class Rehearsals:
    """Runs one command at a time; `flags` say how it finds the API server."""

    def __init__(self, flags: Sequence[str]) -> None:
        self._flags = flags
        self._turn = threading.Lock()
        self._running: subprocess.Popen[str] | None = None
        self._is_over = False

    def __call__(self, arguments: Sequence[str]) -> Json:
        """See `Rehearse`."""
        command = [sys.executable, "-m", "cli.tidb", *arguments, *self._flags, "--output=json"]
        with self._turn:
            if self._is_over:
                raise Failure("the command that serves this page is ending")
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - no shell
                self._running = process
                try:
                    printed, complaint = process.communicate(timeout=_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise Failure(f"the rehearsal has not ended after {_PATIENCE:.0f} s") from None
        if not printed:
            raise Failure(complaint.strip().removeprefix("kubectl tidb: ") or "the rehearsal was interrupted")
        document: Json = msgspec.json.decode(printed)
        return document

    def close(self) -> None:
        """End the rehearsal that runs, and refuse further ones."""
        self._is_over = True
        if self._running is not None:
            self._running.terminate()
