"""The facts about a Backup of a schedule, read from its JSON. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from apis import tso
from apis.backup_conditions import FILES_DIFFER, VERIFIED
from apis.backups import is_incremental
from apis.times import parse_time
from controllers.job_owners import status
from kube.objects import Json, Object, condition_of

_AT_AN_END = (status.CLEAN, status.CLEAN_FAILED)
"""Conditions of a Backup that is being deleted, after all of its Jobs have ended."""
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Made:
    """One Backup.

    - `owner`: the UID of its controller.
    - `is_volume`: True if v1.6 made it from volume snapshots.
    - `is_being_deleted`: True if it is being deleted.
    - `end`: its result, empty while it runs; `why`: the message about it.
    - `at_end`: True if none of its Jobs still writes.
    - `is_doubtful`: True if a check of its files has found missing or different ones.
    - `is_incremental`: True if it only has changes since another backup.
    - `ts`: the time of its data as a TSO; 0 if unknown.
    - `waits`: what it waits for, and since when; empty if it does not wait.
    """

    name: str
    uid: str
    owner: str
    created: datetime
    is_log: bool
    is_volume: bool
    is_being_deleted: bool
    end: str
    why: str
    at_end: bool
    completed: str
    is_doubtful: bool
    is_incremental: bool
    ts: int
    waits: str = ""

    @property
    def is_complete(self) -> bool:
        """True if BR has reported it Complete and it is not being deleted."""
        return self.end == status.COMPLETE and not self.is_being_deleted

    @property
    def is_good(self) -> bool:
        """True if a cluster can be restored from it, as far as checks have shown."""
        return self.is_complete and not self.is_doubtful


def facts_of(backup: Object) -> Made:
    """The facts about a Backup, whose status may be malformed by other clients."""
    body = backup.decode()
    meta, now = backup.metadata, _tree(body.get("status"))
    conditions = [condition for condition in now.get("conditions") or () if isinstance(condition, dict)]
    spec, verified, readable = _tree(body.get("spec")), condition_of(conditions, VERIFIED), {"conditions": conditions}
    end = status.ended(readable) or (status.INVALID if status.holds(readable, status.INVALID) else "")
    return Made(
        name=meta.name,
        uid=meta.uid,
        owner=meta.controller.uid if meta.controller else "",
        created=parse_time(meta.creation_timestamp or "") or _NEVER,
        is_log=spec.get("backupMode") == "log",
        is_volume=spec.get("backupMode") == "volume-snapshot",
        is_being_deleted=meta.deletion_timestamp is not None,
        end=end,
        why=str(condition_of(conditions, end).get("message") or ""),
        at_end=bool(end) or any(condition_of(conditions, kind) for kind in _AT_AN_END),
        completed=str(now.get("timeCompleted") or ""),
        is_doubtful=verified.get("status") == "False" and verified.get("reason") == FILES_DIFFER,
        is_incremental=is_incremental(_tree(spec.get("br")).get("options") or ()),
        ts=timestamp(str(now.get("commitTs") or "")),
        waits=_wait(condition_of(conditions, status.WAITING)),
    )


def _wait(condition: Json) -> str:
    if condition.get("status") != "True":
        return ""
    return f"since {condition.get('lastTransitionTime')} it has been {condition.get('message')}"


def unfinished(backups: Sequence[Made]) -> Made | None:
    """A snapshot that has not ended, if there is one."""
    return next((backup for backup in backups if not backup.is_log and not backup.at_end), None)


def timestamp(text: str) -> int:
    """The TSO in a field of a status; 0 if it is not one, as in an export from another database."""
    try:
        return tso.parse(text)
    except ValueError:
        return 0


def _tree(value: object) -> Json:
    return value if isinstance(value, dict) else {}
