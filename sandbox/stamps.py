"""Times as Kubernetes writes them: RFC 3339, whole seconds, UTC."""

from datetime import UTC, datetime


def stamp(time: datetime) -> str:
    """`2026-01-01T00:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(time: datetime) -> str:
    """`2026-01-01T00:00:00.000000Z`, the format of Leases."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    """The time of a stamp. Raises ValueError."""
    return datetime.fromisoformat(text)
