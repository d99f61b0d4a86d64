"""Flag values in Go's format, as users of v1.6 write them."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"(?:{_PART})+")

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def parse_duration(text: str) -> float:
    """Seconds of a Go duration, e.g. `30s`, `1h30m`, `1.5h` or `0`.

    Raises ValueError, which describes the format. Negative durations are rejected: no flag uses them.
    """
    if text == "0":
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write a number with a unit, such as 30s, 5m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))


def format_duration(seconds: float) -> str:
    """A duration in Go's format, to the millisecond: `30s`, `5m0s`, `24h0m0s`, `1m0.5s`, `500ms`."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{round(rest, 3):g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def parse_bool(text: str) -> bool:
    """Parse a Go boolean: 1, t, true, 0, f, false, in lower, upper or title case. Raises ValueError."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"{text!r} is not a boolean; write true or false")
