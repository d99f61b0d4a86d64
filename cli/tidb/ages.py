"""Times in a readable form: how long ago, how long until. Pure."""

from datetime import datetime, timedelta

from apis.times import parse_time

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def ago(text: str, now: datetime) -> str:
    """The age of a time in a status, e.g. `3m`; empty without one."""
    time = parse_time(text) if text else None
    return length(now - time) if time else ""


def length(span: timedelta) -> str:
    """A span in its largest unit with a value of at least two, e.g. `90s` or `2d`; a negative span counts as zero."""
    seconds = max(int(span.total_seconds()), 0)
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 2 * size), _UNITS[-1])
    return f"{seconds // size}{unit}"
