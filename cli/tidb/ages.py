"""Times as people read them: how long ago, how long until. Pure."""

from datetime import datetime, timedelta

from apis.times import parse_time

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def ago(text: str, now: datetime) -> str:
    """How long a time in a status is over, such as `3m`; empty when it is none."""
    time = parse_time(text) if text else None
    return length(now - time) if time else ""


def length(span: timedelta) -> str:
    """A span in its largest unit of which there are two at least, such as `90s` or `2d`; what is negative is none."""
    seconds = max(int(span.total_seconds()), 0)
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 2 * size), _UNITS[-1])
    return f"{seconds // size}{unit}"
