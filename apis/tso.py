"""Timestamps of PD (TSO), and how users write them (backup.md 1.1)."""

import re
from datetime import UTC, datetime, timedelta

LOGICAL_BITS = 18
"""The lowest bits, which count within a millisecond."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**64 - 1
_DATE_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def parse(text: str) -> int:
    """The TSO that a text means; 0 for an empty one. Raises ValueError.

    A time without a zone is UTC, wherever it is read: in v1.6 it is in the zone of the process, and controller and Job
    may differ in that.
    """
    if not text:
        return 0
    if text.isascii() and text.isdigit() and int(text) <= _LARGEST:
        return int(text)
    if not _DATE_TIME.fullmatch(text) and not _RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is no timestamp; use a TSO, or a time such as 2024-05-01T10:00:00Z")
    time = datetime.fromisoformat(text.upper())
    return of_time(time if time.tzinfo else time.replace(tzinfo=UTC))


def with_zone(text: str) -> str:
    """The same moment for programs that may be in another zone: a time without one as a TSO. Raises ValueError."""
    return str(parse(text)) if _DATE_TIME.fullmatch(text) else text


def of_time(time: datetime) -> int:
    """The first TSO of a time, which has a zone."""
    return (time - _EPOCH) // timedelta(milliseconds=1) << LOGICAL_BITS


def time_of(tso: int) -> datetime:
    """The time of a TSO, in UTC, to the millisecond."""
    return _EPOCH + timedelta(milliseconds=tso >> LOGICAL_BITS)
