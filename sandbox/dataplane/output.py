"""What a container prints, as the kubelet keeps it: lines with their times, the newest of them."""

import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from ports.clock import Clock

_KEPT = 2000
"""Lines of a container; the kubelet rotates its files, too."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, its number in the container, and when it was printed."""

    number: int
    time: datetime
    text: str


class Output:
    """What one run of a container has printed. Safe for use by many threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._lines: deque[Line] = deque(maxlen=_KEPT)
        self._number = 0
        self._begun = ""
        self.ended = False
        """Whether nothing more will be printed."""

    def say(self, text: str) -> None:
        """Print a text, whose last line may go on later."""
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            for line in lines:
                self._append(line)

    def note(self, level: str, message: str, **fields: object) -> None:
        """Print a line in TiDB's unified log format."""
        with self._lock:
            time = self._clock.wall()
            told = "".join(f" [{name}={value}]" for name, value in fields.items())
            stamp = f"{time:%Y/%m/%d %H:%M:%S}.{time.microsecond // 1000:03} +00:00"
            self._append(f'[{stamp}] [{level}] ["{message}"]{told}')

    def end(self) -> None:
        """The container has ended."""
        with self._lock:
            if self._begun:
                self._append(self._begun)
            self._begun, self.ended = "", True

    def after(self, number: int) -> list[Line]:
        """The lines after that one, of those that are kept."""
        with self._lock:
            return [line for line in self._lines if line.number > number]

    def _append(self, text: str) -> None:
        self._number += 1
        self._lines.append(Line(self._number, self._clock.wall(), text))
