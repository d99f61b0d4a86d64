"""Times as annotations and status fields hold them: RFC 3339, UTC, whole seconds."""

from datetime import UTC, datetime


def stamp(now: datetime) -> str:
    """A time as the operator writes it. `now` has a zone."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """The time in a text, in UTC; None if the text is not a time.

    Users may omit the zone. The time is then read as UTC, which the operator itself writes.
    """
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
