"""Durations and sizes as Go and PD write them."""

import re

_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def seconds(text: str) -> float:
    """The seconds of a Go duration such as `30m0s`. Raises ValueError."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"not a duration: {text!r}")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def duration(value: float) -> str:
    """Seconds as a Go duration, such as `1h2m3.45s`."""
    hours, rest = divmod(value, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".")
    if hours:
        return f"{int(hours)}h{int(minutes)}m{text}s"
    return f"{int(minutes)}m{text}s" if minutes else f"{text}s"


def size(count: int) -> str:
    """Bytes with four significant digits, such as `98.6GiB`."""
    value = float(count)
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{value:.4g}{_UNITS[unit]}"
