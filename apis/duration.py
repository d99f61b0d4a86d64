"""Durations as Go writes them: `1500m`, `1h30m`, `400s`."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")

_LONGEST = 2**63 / 1e9
"""Seconds: Go counts nanoseconds."""


def seconds(text: str) -> float:
    """The duration in seconds. Raises ValueError if `text` is not a Go duration."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; use, for example, 90s, 10m or 1h30m")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if total >= _LONGEST:
        raise ValueError(f"{text!r} is too long a duration; use less than 2562047h")
    return -total if text.startswith("-") else total
