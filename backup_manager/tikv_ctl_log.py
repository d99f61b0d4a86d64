"""Parser of the log of `tikv-ctl compact-log-backup`, one JSON document per line (backup.md 7.10). Pure."""

from dataclasses import dataclass

import msgspec

from kube.objects import Json

_FINISHING = "Finishing compaction."
_SPAWNING = "Spawning compaction."
_ABORTED = "Compaction aborted."
_BAD = ("ERROR", "ERRO", "FATAL", "CRIT", "CRITICAL")


@dataclass(frozen=True, slots=True)
class CompactionProgress:
    """The number of metadata files read, and of bytes compacted."""

    meta_completed: int
    meta_total: int
    bytes_compacted: int
    bytes_to_compact: int

    def __str__(self) -> str:
        """In v1.6's form for the status."""
        meta = f"READ_META({self.meta_completed}/{self.meta_total})"
        return f"[{meta},COMPACT_WORK({self.bytes_compacted}/{self.bytes_to_compact})]"


@dataclass(frozen=True, slots=True)
class LogLine:
    """The relevant content of a line: progress, the last TSO of the input, and errors."""

    progress: CompactionProgress | None = None
    input_until: int = 0
    aborted: str = ""
    error: str = ""


def read_line(line: str) -> LogLine:
    """Parse a line of stderr; one that is not JSON is an error message of the program itself."""
    fields = _fields(line)
    if fields is None:
        return LogLine(error=line.strip())
    message = str(fields.get("message") or fields.get("msg") or "")
    if message == _FINISHING:
        return LogLine(progress=_progress(fields))
    if message == _SPAWNING:
        return LogLine(input_until=_number(fields, "input_max_ts"))
    if message == _ABORTED:
        return LogLine(aborted=str(fields.get("err") or message))
    is_bad = str(fields.get("level") or "").upper() in _BAD
    return LogLine(error=f"{message} {fields.get('err') or ''}".strip() if is_bad else "")


def _progress(fields: Json) -> CompactionProgress:
    names = ("meta_completed", "meta_total", "bytes_compacted", "bytes_to_compact")
    return CompactionProgress(*(_number(fields, name) for name in names))


def _fields(line: str) -> Json | None:
    """The fields of a line by lower-case name; None if it has none."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return {str(name).lower(): value for name, value in found.items()} if isinstance(found, dict) else None


def _number(fields: Json, name: str) -> int:
    """A number, possibly written as text; 0 for anything else."""
    try:
        return int(fields.get(name) or 0)
    except (TypeError, ValueError):
        return 0
