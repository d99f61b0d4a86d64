"""A run of BR: its log is passed on, its progress gets into the status, its errors are kept (backup.md 7.6, 7.7)."""

import re
from collections.abc import Callable, Sequence

import structlog

from backup_manager import statuses
from backup_manager.br_arguments import BR
from backup_manager.br_log import ErrorLines, operation_in, progress_in
from backup_manager.child_process import CannotStart
from backup_manager.outcomes import Stopped
from backup_manager.outside import Outside
from backup_manager.records import Record

_log = structlog.get_logger(__name__)

_EVERY = 3.0
"""Seconds between two writes of the same step's progress."""


class ToolFailed(Exception):
    """Raised when a tool ends with an error, or does not start; the message is what it said."""


def run_br(
    arguments: Sequence[str], record: Record, outside: Outside, also: Callable[[str], None] | None = None
) -> None:
    """Run BR to its end. `also` is told each line. Raises ToolFailed; Stopped when a signal was why."""
    run = _Run(record, outside, also)
    shown = [outside.secrets.cut_from(word) for word in arguments]
    _log.info("starting BR", arguments=shown)
    try:
        code = outside.launcher.run([BR, *arguments], outside.environ, run.on_line, outside.stop)
    except CannotStart as error:
        raise ToolFailed(str(error)) from error
    if code == 0:
        return
    if outside.stop.is_set():
        raise Stopped
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    raise ToolFailed(f"BR ended with {how}: {run.errors}".rstrip(": "))


class _Run:
    """What the lines of a run have told."""

    def __init__(self, record: Record, outside: Outside, also: Callable[[str], None] | None) -> None:
        self.errors = ErrorLines()
        self._record = record
        self._clock = outside.clock
        self._secrets = outside.secrets
        self._also = also
        self._step = ""
        self._written = 0.0

    def on_line(self, line: str, is_error_stream: bool) -> None:
        line = self._secrets.cut_from(line)
        _log.info("BR", line=line)
        self.errors.add(line, is_error_stream=is_error_stream)
        if self._also is not None:
            self._also(line)
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
    """Notes whether a tool printed how it is used: it does not know what it was asked for."""

    def __init__(self) -> None:
        self.is_true = False

    def look_at(self, line: str) -> None:
        """Look at a line."""
        self.is_true = self.is_true or _USAGE.search(line) is not None
