"""The output of a container as the kubelet keeps it: the newest lines with their times."""

import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from ports.clock import Clock

_KEPT = 2000
"""The maximum number of lines, because the kubelet rotates its files."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, its number in the container, and its time."""

    number: int
    time: datetime
    text: str


class Output:
    """The output of one run of a container. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._lines: deque[Line] = deque(maxlen=_KEPT)
        self._number = 0
        self._begun = ""
        self.ended = False
        """True if nothing more will be printed."""

    def say(self, text: str) -> None:
        """Print a text; its last line may continue later."""
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
        """Record that the container has ended."""
        with self._lock:
            if self._begun:
                self._append(self._begun)
            self._begun, self.ended = "", True

    def after(self, number: int) -> list[Line]:
        """The kept lines after the given number."""
        with self._lock:
            return [line for line in self._lines if line.number > number]

    def _append(self, text: str) -> None:
        self._number += 1
        self._lines.append(Line(self._number, self._clock.wall(), text))
