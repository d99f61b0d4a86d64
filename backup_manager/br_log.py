"""What BR's log tells, line by line (backup.md 7.5, 7.6, 7.7). Pure."""

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
"""Characters of errors that a condition can hold without making its object too large for etcd."""


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """How far a step has come, in percent, and how fast, in BR's words; empty where it does not say."""

    step: str
    percent: float
    speed: str = ""


@dataclass(frozen=True, slots=True)
class OperationLine:
    """That BR has begun with something; the time as a status holds it, empty when it cannot be read."""

    operation_id: str
    started_at: str
    command: str


def progress_in(line: str) -> ProgressLine | None:
    """The progress that a line tells."""
    found = _PROGRESS.search(line)
    if found is None:
        return None
    speed = _SPEED.search(line)
    try:
        percent = float(found[2])
    except ValueError:
        return None
    return ProgressLine(found[1], min(percent, 100.0), speed[1] if speed else "")


def operation_in(line: str) -> OperationLine | None:
    """The operation whose beginning a line tells."""
    if not _STARTED.search(line):
        return None
    fields = {name: found[1] if (found := pattern.search(line)) else "" for name, pattern in _OPERATION.items()}
    if not fields["operation_id"]:
        return None
    started = _time(fields["operation_started_at"])
    return OperationLine(fields["operation_id"], stamp(started) if started else "", fields["command"])


def _time(text: str) -> datetime | None:
    """RFC 3339, or as BR's log has it: `2006/01/02 15:04:05.000 -07:00`."""
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f %z").astimezone(UTC)
    except ValueError:
        return parse_time(text)


class ErrorLines:
    """What of BR's output says why it failed: all of stderr, and bad lines of stdout; the last, if it is long."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._length = 0
        self._dropped = 0

    def add(self, line: str, *, is_error_stream: bool) -> None:
        """Look at a line."""
        if not line.strip() or not (is_error_stream or any(token in line for token in _BAD)):
            return
        self._lines.append(line[-_KEPT:])
        self._length += len(self._lines[-1]) + 1
        while self._length > _KEPT and len(self._lines) > 1:
            self._length -= len(self._lines.popleft()) + 1
            self._dropped += 1

    def __str__(self) -> str:
        """The lines, and how many came before them."""
        before = [f"({self._dropped} lines before these are in the pod's log)"] if self._dropped else []
        return "\n".join([*before, *self._lines])
