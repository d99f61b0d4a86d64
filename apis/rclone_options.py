"""The meaning of `spec.s3.options`, which v1.6 passes to rclone with an export or import (backup.md 7.9). Pure.

Files are copied without rclone here. An option with a meaning for that copy keeps its meaning. An option that could
change nothing is accepted. Every other option is refused, since the user expects an effect.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_PART = "--s3-chunk-size"
_AT_ONCE = "--s3-upload-concurrency"
_FLAGS = frozenset(
    {"-q", "-v", "-vv", "--quiet", "--verbose", "--ignore-checksum", "--s3-no-check-bucket", "--s3-no-head"}
)
"""Flags without effect: one file is copied, the log is the operator's, no bucket is ever created."""
_VALUED = frozenset({"--checkers", "--log-level", "--s3-upload-cutoff", "--stats", "--transfers"})
"""Options with a value and without effect."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([bkmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"b": 1, "": 1 << 10, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
"""rclone counts in KiB where nothing else is said."""
_LEAST_PART = 5 << 20


class UnknownOption(ValueError):
    """Raised for an option that cannot be followed."""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The settings of a copy: the size of parts in bytes, and the number of parallel ones; None: the default."""

    part_size: int | None = None
    parts_at_once: int | None = None


def parse(options: Sequence[str]) -> CopyOptions:
    """The settings from the options. Raises UnknownOption."""
    part_size = parts_at_once = None
    for name, value in _named(options):
        if name == _PART:
            part_size = _size(name, value)
        elif name == _AT_ONCE:
            parts_at_once = _count(name, value)
        elif name not in _FLAGS and name not in _VALUED:
            why = f"cannot be followed, since files are copied without rclone; remove it, or use {_PART} or {_AT_ONCE}"
            raise UnknownOption(f"{name} {why}")
    return CopyOptions(part_size, parts_at_once)


def _named(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options and their values, which may be separate words."""
    words = iter(options)
    for word in words:
        name, separator, value = word.partition("=")
        if name in (_PART, _AT_ONCE, *_VALUED) and not separator:
            value = next(words, "")
        yield name, value


def _size(name: str, text: str) -> int:
    match = _SIZE.fullmatch(text)
    size = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if size < _LEAST_PART:
        raise UnknownOption(f"{name}: {text!r} is no size of at least 5Mi, which S3 asks for; use one such as 16Mi")
    return size


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise UnknownOption(f"{name}: {text!r} is no number of at least 1")
    return int(text)
