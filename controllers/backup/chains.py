"""The snapshots on which a log backup builds; without one, it restores nothing (backup.md 3.9, 5.3). Pure.

BR restores a moment from the newest snapshot before it and the log from there on. A snapshot is a base of a log if it
is a full backup of the same cluster, was taken between the log's begin or last truncation and its checkpoint, and a
check has not found its files wrong. It can replace another base only if it has all tables of that one. v1.6 counts
every ended Backup, including failed ones.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from apis import log_backups, tso
from apis.backup_conditions import FILES_DIFFER, VERIFIED
from apis.backup_paths import is_at
from apis.backups import Backup, is_incremental
from apis.storage_providers import StorageProvider
from member.backups.paths import same_store
from member.outcome import Wait

T = TypeVar("T")


def bases(log: Backup, backups: Iterable[Backup]) -> list[Backup]:
    """The snapshots on which a log backup builds, the oldest first. All objects must have their defaults."""
    until = moment(log.status.log_checkpoint_ts)
    stay = [backup for backup in backups if is_candidate(log, backup) and not _goes(backup) and not _is_wrong(backup)]
    found = [backup for backup in stay if moment(backup.status.commit_ts) <= until]
    return sorted(found, key=lambda each: moment(each.status.commit_ts))


def is_candidate(log: Backup, backup: Backup) -> bool:
    """True if a log backup builds on a snapshot, or will when its checkpoint has reached it."""
    if backup.spec.backup_mode != "snapshot" or backup.spec.backup_type != "full" or not same_cluster(log, backup):
        return False
    if backup.spec.br is None or is_incremental(backup.spec.br.options):
        return False
    begins, _ = bounds(log)
    return is_complete(backup) and 0 < begins <= moment(backup.status.commit_ts)


def base_of(log: Backup, backups: Iterable[Backup], since: int) -> Backup | None:
    """The snapshot to keep so that every moment from the TSO `since` on can be restored; None if there is none."""
    return next((backup for backup in reversed(bases(log, backups)) if moment(backup.status.commit_ts) <= since), None)


def needing(snapshot: Backup, backups: Sequence[Backup]) -> Backup | None:
    """The log backup for which this snapshot is the last base; None if there is none.

    `backups` may contain the snapshot itself, which may be being deleted.
    """
    others = [backup for backup in backups if backup.metadata.uid != snapshot.metadata.uid]
    logs = (backup for backup in others if backup.spec.backup_mode == "log" and not _goes(backup))
    needed = (log for log in logs if is_candidate(log, snapshot))
    return next(
        (log for log in needed if not any(_stands_for(backup, snapshot) for backup in bases(log, others))), None
    )


def _stands_for(base: Backup, snapshot: Backup) -> bool:
    """True if a base has all tables of a snapshot, judged by the filters: it has the same filters, or none."""
    return _filters(base) in ([], _filters(snapshot))


def _filters(backup: Backup) -> list[str]:
    options = backup.spec.br.options if backup.spec.br else []
    return [*backup.spec.table_filter, *(option for option in options if option.startswith(("--filter", "-f")))]


def _is_wrong(backup: Backup) -> bool:
    """True if a check of its files has found missing or different ones; a check that failed does not count."""
    found = (condition for condition in backup.status.conditions if condition.type == VERIFIED)
    return any(condition.status == "False" and condition.reason == FILES_DIFFER for condition in found)


def is_complete(backup: Backup) -> bool:
    """True if a Backup is Complete."""
    return any(condition.type == "Complete" and condition.status == "True" for condition in backup.status.conditions)


def _goes(backup: Backup) -> bool:
    return backup.metadata.deletion_timestamp is not None


def same_cluster(one: Backup, other: Backup) -> bool:
    """True if two Backups are of the same cluster."""
    mine, theirs = one.spec.br, other.spec.br
    if mine is None or theirs is None:
        return False
    return (mine.cluster_namespace, mine.cluster) == (theirs.cluster_namespace, theirs.cluster)


def bounds(log: Backup) -> tuple[int, int]:
    """The TSOs at which a log begins after truncations, and up to which it is written; 0 if unknown."""
    now = log.status
    return max(moment(now.commit_ts), moment(now.log_success_truncate_until)), moment(now.log_checkpoint_ts)


def is_from(backup: Backup, storage: StorageProvider) -> bool:
    """True if a Backup has written the files at a place. The endpoints count: bucket names are not unique."""
    own = backup.spec
    if not is_at(backup.status.backup_path, storage) or not same_store(own, storage):
        return False
    return own.s3 is None or storage.s3 is None or own.s3.endpoint.rstrip("/") == storage.s3.endpoint.rstrip("/")


def logs_at(backups: Iterable[Backup], storage: StorageProvider) -> list[Backup]:
    """The log Backups that have written the files at a place."""
    return [backup for backup in backups if backup.spec.backup_mode == "log" and is_from(backup, storage)]


def decisive(found: Sequence[T | Wait | None]) -> T | Wait | None:
    """The obstacle of several logs: none if one log suffices or no log is known, a wait rather than a problem."""
    if not found or None in found:
        return None
    return next((outcome for outcome in found if isinstance(outcome, Wait)), found[0])


def until_reached(log: Backup, field: str, at: int) -> Wait:
    """The wait until a log has reached the TSO of a field."""
    _, reached = bounds(log)
    resume = "; resume it" if log.status.phase == log_backups.PAUSED else ""
    now = f"it has reached {shown(reached)}" if reached else "it has written nothing yet"
    name = f"{log.metadata.namespace}/{log.metadata.name}"
    return Wait(f"waiting for the log of Backup {name} to reach {field} {shown(at)}; {now}{resume}")


def shown(at: int) -> str:
    """A TSO with its time, for messages."""
    return f"{tso.time_of(at):%Y-%m-%dT%H:%M:%SZ} (TSO {at})"


def moment(text: str) -> int:
    """The TSO of a timestamp in a status; 0 if it cannot be parsed."""
    try:
        return tso.parse(text)
    except ValueError:
        return 0
