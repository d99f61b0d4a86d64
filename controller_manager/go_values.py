"""Flag values in Go's format, as users of v1.6 write them."""

from ports import duration

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def parse_duration(text: str) -> float:
    """The seconds of a Go duration. Raises ValueError if it is negative or no duration, with the expected format."""
    seconds = duration.seconds(text)
    if seconds < 0:
        raise ValueError(f"{text!r} is negative; use a duration such as 90s, 10m or 1h30m")
    return seconds


def parse_bool(text: str) -> bool:
    """Parse a Go boolean: 1, t, true, 0, f, false, in lower, upper or title case. Raises ValueError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"{text!r} is not a boolean; write true or false")
