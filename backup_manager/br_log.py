"""Parser of BR's log, line by line (backup.md 7.5, 7.6, 7.7). Pure."""

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from apis.times import parse_time, stamp

_PROGRESS = re.compile(r'\[progress\] \[step="?([^"\]]*)"?\] \[progress=([\d.]+)%\]')
_SPEED = re.compile(r'\[speed="?([^"\]]*)"?\]')
_STARTED = re.compile(r'\["?BR operation started"?\]')
_FIELD = r'\[{}="?([^"\]]*)"?\]'
_OPERATION = {name: re.compile(_FIELD.format(name)) for name in ("operation_id", "operation_started_at", "command")}
_BAD = ("[ERROR]", "[FATAL]", "[PANIC]")

_KEPT = 16_000
"""The maximum number of characters of errors in a condition, so that the object fits into etcd."""


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """The progress of a step in percent, and its speed in BR's words, or empty."""

    step: str
    percent: float
    speed: str = ""


@dataclass(frozen=True, slots=True)
class OperationLine:
    """The start of an operation; the time as in a status, or empty if unreadable."""

    operation_id: str
    started_at: str
    command: str


def progress_in(line: str) -> ProgressLine | None:
    """The progress in a line."""
    match = _PROGRESS.search(line)
    if match is None:
        return None
    speed = _SPEED.search(line)
    try:
        percent = float(match[2])
    except ValueError:
        return None
    return ProgressLine(match[1], min(percent, 100.0), speed[1] if speed else "")


def operation_in(line: str) -> OperationLine | None:
    """The operation that a line reports as started."""
    if not _STARTED.search(line):
        return None
    fields = {name: match[1] if (match := pattern.search(line)) else "" for name, pattern in _OPERATION.items()}
    if not fields["operation_id"]:
        return None
    started = _time(fields["operation_started_at"])
    return OperationLine(fields["operation_id"], stamp(started) if started else "", fields["command"])


def _time(text: str) -> datetime | None:
    """A time in RFC 3339, or in the format of BR's log: `2006/01/02 15:04:05.000 -07:00`."""
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f %z").astimezone(UTC)
    except ValueError:
        return parse_time(text)


class ErrorLines:
    """The part of BR's output that explains a failure: all of stderr and error lines of stdout; if long, the end."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._length = 0
        self._dropped = 0

    def add(self, line: str, *, is_error_stream: bool) -> None:
        """Process a line."""
        if not line.strip() or not (is_error_stream or any(token in line for token in _BAD)):
            return
        self._lines.append(line[-_KEPT:])
        self._length += len(self._lines[-1]) + 1
        while self._length > _KEPT and len(self._lines) > 1:
            self._length -= len(self._lines.popleft()) + 1
            self._dropped += 1

    def __str__(self) -> str:
        """The lines, and the number of omitted ones."""
        before = [f"({self._dropped} lines before these are in the pod's log)"] if self._dropped else []
        return "\n".join([*before, *self._lines])
