"""Dumpling's file `metadata`, written last, with the position of the dump (backup.md 7.9)."""

from pathlib import Path

NAME = "metadata"

_FINISHED = "Finished dump at"


class NoPosition(Exception):
    """Raised for a dump without a position."""


def is_finished(dump: Path) -> bool:
    """True if Dumpling has finished."""
    try:
        return _FINISHED in (dump / NAME).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def commit_ts(dump: Path) -> str:
    """The TSO of the dump. Raises NoPosition."""
    try:
        lines = (dump / NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise NoPosition(f"{dump.name}/{NAME} cannot be read: {error.strerror}") from error
    position = next((line.partition(":")[2].strip() for line in lines if "Pos" in line), "")
    if not position.isdecimal():
        raise NoPosition(f"{dump.name}/{NAME} has no line with Pos and a number; is it a dump of TiDB?")
    return position
