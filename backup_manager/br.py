"""A run of BR, whose progress goes into the status (backup.md 7.6, 7.7)."""

import re
from collections.abc import Callable, Sequence

from backup_manager import statuses
from backup_manager.br_arguments import BR
from backup_manager.br_log import operation_in, progress_in
from backup_manager.outside import Outside
from backup_manager.records import Record
from backup_manager.tools import ToolFailed, run_tool

_EVERY = 3.0
"""Seconds between two writes of the same step's progress."""


def run_br(
    arguments: Sequence[str], record: Record, outside: Outside, also: Callable[[str], None] = lambda _line: None
) -> None:
    """Run BR to its end. `also` receives each line. Raises ToolFailed; Stopped if a signal was the cause."""
    progress = _Progress(record, outside)

    def on_line(line: str) -> None:
        also(line)
        progress.look_at(line)

    try:
        run_tool("BR", [BR, *arguments], outside, on_line)
    except ToolFailed as error:
        if _speaks_tls(arguments) and _UNTRUSTED.search(str(error)):
            raise ToolFailed(f"{error}; {_which_secret(record)}") from error
        raise


_UNTRUSTED = re.compile(r"x509:|tls:|\[PD:client:")
"""BR's messages about untrusted certificates; about PD it often reports only that it does not answer."""


def _speaks_tls(arguments: Sequence[str]) -> bool:
    return any(argument.startswith("--ca=") for argument in arguments)


def _which_secret(record: Record) -> str:
    cluster = record.read()["spec"]["br"]["cluster"]
    return f"its certificates are in Secret {cluster}-cluster-client-secret: are they valid, by the cluster's CA?"


class _Progress:
    """Writes the progress in BR's output into the status."""

    def __init__(self, record: Record, outside: Outside) -> None:
        self._record = record
        self._clock = outside.clock
        self._step = ""
        self._written = 0.0

    def look_at(self, line: str) -> None:
        """Process a line."""
        self._progress(line)
        self._operation(line)

    def _progress(self, line: str) -> None:
        progress = progress_in(line)
        if progress is None:
            return
        now = self._clock.now()
        is_news = progress.step != self._step or progress.percent >= 100
        if not is_news and now - self._written < _EVERY:
            return
        self._step, self._written = progress.step, now
        self._record.try_status(lambda status: statuses.with_progress(status, progress, self._clock.wall()))

    def _operation(self, line: str) -> None:
        if operation := operation_in(line):
            self._record.try_status(lambda status: statuses.with_operation(status, operation, self._clock.wall()))


_USAGE = re.compile(r"Usage:|--help")


class UsageShown:
    """Detects if a tool printed its usage, because it does not know an argument."""

    def __init__(self) -> None:
        self.is_true = False

    def look_at(self, line: str) -> None:
        """Process a line."""
        self.is_true = self.is_true or _USAGE.search(line) is not None
