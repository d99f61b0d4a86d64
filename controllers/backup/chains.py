"""Which snapshot the log of changes builds on: without one, a log backup restores nothing (backup.md 3.9, 5.3). Pure.

A moment is restored from the newest snapshot before it and the log from there on. So a snapshot is a base of a log when
it is a full one of the same cluster, was taken since the log began or was last truncated, and before the log's
checkpoint, and its files were not found wrong. It stands for another one only if it has all tables that that one has.
v1.6 counts any Backup that has ended, failed ones included.
"""

from collections.abc import Iterable, Sequence

from apis import tso
from apis.backup_conditions import FILES_DIFFER, VERIFIED
from apis.backup_paths import is_at
from apis.backups import Backup, is_incremental
from apis.storage_providers import StorageProvider
from member.backups.paths import same_store


def bases(log: Backup, backups: Iterable[Backup]) -> list[Backup]:
    """The snapshots from which a log backup restores, the oldest first. All objects have their defaults."""
    until = moment(log.status.log_checkpoint_ts)
    stay = [each for each in backups if is_candidate(log, each) and not _goes(each) and not _is_wrong(each)]
    found = [each for each in stay if moment(each.status.commit_ts) <= until]
    return sorted(found, key=lambda each: moment(each.status.commit_ts))


def is_candidate(log: Backup, backup: Backup) -> bool:
    """Whether a log backup restores from a snapshot, or will once its checkpoint has come that far."""
    if backup.spec.backup_mode != "snapshot" or backup.spec.backup_type != "full" or not same_cluster(log, backup):
        return False
    if backup.spec.br is None or is_incremental(backup.spec.br.options):
        return False
    begins, _ = bounds(log)
    return is_complete(backup) and 0 < begins <= moment(backup.status.commit_ts)


def base_of(log: Backup, backups: Iterable[Backup], since: int) -> Backup | None:
    """The snapshot to keep so that any moment from the TSO `since` on can be restored; None when there is none."""
    return next((each for each in reversed(bases(log, backups)) if moment(each.status.commit_ts) <= since), None)


def needing(snapshot: Backup, backups: Sequence[Backup]) -> Backup | None:
    """The log backup that restores nothing without this snapshot: no other base is left. None when there is none.

    The snapshot itself may be among `backups`, and may be being deleted.
    """
    others = [each for each in backups if each.metadata.uid != snapshot.metadata.uid]
    logs = (each for each in others if each.spec.backup_mode == "log" and not _goes(each))
    needed = (log for log in logs if is_candidate(log, snapshot))
    return next((log for log in needed if not any(_stands_for(each, snapshot) for each in bases(log, others))), None)


def _stands_for(base: Backup, snapshot: Backup) -> bool:
    """Whether a base has all tables that a snapshot has, as far as filters tell: it has the same ones, or none."""
    return _filters(base) in ([], _filters(snapshot))


def _filters(backup: Backup) -> list[str]:
    options = backup.spec.br.options if backup.spec.br else []
    return [*backup.spec.table_filter, *(each for each in options if each.startswith(("--filter", "-f")))]


def _is_wrong(backup: Backup) -> bool:
    """Whether its files were looked at, and found missing or others; a look that was not possible tells nothing."""
    found = (each for each in backup.status.conditions if each.type == VERIFIED)
    return any(each.status == "False" and each.reason == FILES_DIFFER for each in found)


def is_complete(backup: Backup) -> bool:
    """Whether a Backup has ended well."""
    return any(each.type == "Complete" and each.status == "True" for each in backup.status.conditions)


def _goes(backup: Backup) -> bool:
    return backup.metadata.deletion_timestamp is not None


def same_cluster(one: Backup, other: Backup) -> bool:
    """Whether two Backups are of one cluster."""
    mine, theirs = one.spec.br, other.spec.br
    if mine is None or theirs is None:
        return False
    return (mine.cluster_namespace, mine.cluster) == (theirs.cluster_namespace, theirs.cluster)


def bounds(log: Backup) -> tuple[int, int]:
    """The TSOs at which a log begins, as far as it is not truncated, and up to which it is written; 0 when unknown."""
    now = log.status
    return max(moment(now.commit_ts), moment(now.log_success_truncate_until)), moment(now.log_checkpoint_ts)


def is_from(backup: Backup, storage: StorageProvider) -> bool:
    """Whether a Backup has written what is at a place; a bucket of the same name may be another one elsewhere."""
    own = backup.spec
    if not is_at(backup.status.backup_path, storage) or not same_store(own, storage):
        return False
    return own.s3 is None or storage.s3 is None or own.s3.endpoint.rstrip("/") == storage.s3.endpoint.rstrip("/")


def shown(at: int) -> str:
    """A TSO as messages show it, with its time."""
    return f"{tso.time_of(at):%Y-%m-%dT%H:%M:%SZ} (TSO {at})"


def moment(text: str) -> int:
    """The TSO of a timestamp in a status; 0 for one that cannot be read."""
    try:
        return tso.parse(text)
    except ValueError:
        return 0
