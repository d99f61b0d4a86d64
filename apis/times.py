"""Times as annotations and status fields hold them: RFC 3339, UTC, whole seconds."""

from datetime import UTC, datetime


def stamp(now: datetime) -> str:
    """A time as the operator writes it. `now` has a zone."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """The time that a text holds, in UTC; None when it holds none that can be read.

    Whoever wrote it may have left the zone out. It is read as UTC then, which is what the operator itself writes.
    """
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
