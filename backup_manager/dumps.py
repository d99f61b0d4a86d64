"""What Dumpling writes last: `metadata`, in which the moment of the dump stands (backup.md 7.9)."""

from pathlib import Path

NAME = "metadata"

_FINISHED = "Finished dump at"


class NoPosition(Exception):
    """Raised when a dump does not say of which moment it is."""


def is_finished(dump: Path) -> bool:
    """Whether Dumpling has come to its end."""
    try:
        return _FINISHED in (dump / NAME).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def commit_ts(dump: Path) -> str:
    """The TSO of the moment. Raises NoPosition."""
    try:
        lines = (dump / NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise NoPosition(f"{dump.name}/{NAME} cannot be read: {error.strerror}") from error
    position = next((line.partition(":")[2].strip() for line in lines if "Pos" in line), "")
    if not position.isdecimal():
        raise NoPosition(f"{dump.name}/{NAME} has no line with Pos and a number; is it a dump of TiDB?")
    return position
