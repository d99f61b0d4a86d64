"""Ages as kubectl shows them."""

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNKNOWN = "<unknown>"


def age(timestamp: str | None, now: datetime) -> str:
    """The time since an RFC 3339 timestamp, such as `5m30s`; `<unknown>` without one."""
    if not timestamp:
        return _UNKNOWN
    try:
        since = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    return human((now - since.astimezone(UTC)).total_seconds())


def human(seconds: float) -> str:
    """A duration in the one or two units that matter at its size."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole >= -1 else "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 3 * _HOUR:
        return _two(whole, _MINUTE, "m", 1, "s", both_below=10 * _MINUTE)
    if whole < 2 * _DAY:
        return _two(whole, _HOUR, "h", _MINUTE, "m", both_below=8 * _HOUR)
    if whole < 2 * 365 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h", both_below=8 * _DAY)
    return _two(whole, 365 * _DAY, "y", _DAY, "d", both_below=8 * 365 * _DAY)


def _two(whole: int, large: int, large_name: str, small: int, small_name: str, *, both_below: int) -> str:
    count, rest = divmod(whole, large)
    rest //= small
    if whole >= both_below or not rest:
        return f"{count}{large_name}"
    return f"{count}{large_name}{rest}{small_name}"
