"""Durations in Go's format: `1500m`, `1h30m`, `400s`."""

import re
from decimal import Decimal

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")

_TOO_LONG = 2**63
"""Nanoseconds: Go has 64 bits for them."""


def nanoseconds(text: str) -> int:
    """The duration in whole nanoseconds. Raises ValueError if `text` is not a Go duration."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; use, for example, 90s, 10m or 1h30m")
    total = sum(int(Decimal(number) * _NANOSECONDS[unit]) for number, unit in _PART.findall(text))
    if total >= _TOO_LONG:
        raise ValueError(f"{text!r} is too long a duration; use less than 2562047h")
    return -total if text.startswith("-") else total


def seconds(text: str) -> float:
    """The duration in seconds. Raises ValueError if `text` is not a Go duration."""
    return nanoseconds(text) / _NANOSECONDS["s"]


def go_text(length: float) -> str:
    """A duration in seconds as Go prints it, to the nanosecond: `500ms`, `1m0.5s`, `24h0m0s`."""
    whole = round(abs(length) * _NANOSECONDS["s"])
    return f"-{_go_text(whole)}" if length < 0 and whole else _go_text(whole)


def _go_text(whole: int) -> str:
    if 0 < whole < _NANOSECONDS["s"]:
        unit = next(each for each in ("ms", "µs", "ns") if whole >= _NANOSECONDS[each])
        return _in_unit(whole, unit)
    hours, rest = divmod(whole, _NANOSECONDS["h"])
    minutes, rest = divmod(rest, _NANOSECONDS["m"])
    text = _in_unit(rest, "s")
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def _in_unit(whole: int, unit: str) -> str:
    number = Decimal(whole) / _NANOSECONDS[unit]
    return f"{number.normalize():f}{unit}"
