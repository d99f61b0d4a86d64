"""Conditions in the statuses of Backups and Restores."""

from datetime import UTC, datetime

from apis.backup_conditions import with_condition


def test_messages_are_printable() -> None:
    status = with_condition({}, "Failed", datetime(2025, 1, 1, tzinfo=UTC), "BRFailed", "BR says:\n\x1b[2J\u202eno")
    assert "BR says:\n\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}no" == status["conditions"][0]["message"]
