"""Other users of the files of a Backup (backup.md 3.9), read live, because removal cannot be undone."""

from apis.backup_defaulting import with_backup_defaults
from apis.backup_paths import backup_path
from apis.backups import Backup
from apis.decoding import decode
from apis.problem import InvalidField
from apis.storage_providers import StorageProvider
from controllers.backup import chains
from controllers.job_owners import status
from controllers.job_owners.files import compacts, everything, readable, reads
from controllers.job_owners.job_owner import JobOwner
from kube.objects import Json, Object
from kube.resources import BACKUPS, COMPACT_BACKUPS, RESTORES
from member.backups.paths import overlap, shared


def user_of(ctx: JobOwner[Backup], path: str) -> str:
    """Another object that needs files below a path of a Backup, e.g. "Restore ns/name"; empty if there is none.

    Raises ApiError, TransportError.
    """
    backups = everything(ctx, BACKUPS)
    for other in backups:
        if other.metadata.uid != ctx.owner.metadata.uid and _shares(other, path, ctx.model.spec):
            return f"Backup {other.key}"
    if log_backup := chains.needing(ctx.model, list(readable(backups))):
        meta = log_backup.metadata
        return f"log backup {meta.namespace}/{meta.name}, which restores from no other snapshot,"
    return reader_of(ctx, path)


def reader_of(ctx: JobOwner[Backup], path: str, until: int | None = None) -> str:
    """An object that still reads files below a path of a Backup, e.g. "Restore ns/name"; empty if there is none.

    With `until`, only the part of the log before that TSO counts. Raises ApiError, TransportError.
    """
    for restore in everything(ctx, RESTORES):
        if reads(restore, path, ctx.model.spec):
            return f"Restore {restore.key}"
    for compact in everything(ctx, COMPACT_BACKUPS):
        if compacts(compact, path, ctx.model.spec, until):
            return f"CompactBackup {compact.key}"
    return ""


def has_namesake(ctx: JobOwner[Backup]) -> bool:
    """True if a log backup of the same name has begun in the same cluster. Raises ApiError, TransportError."""
    return bool(log_backup_named(ctx, ctx.name))


def log_backup_named(ctx: JobOwner[Backup], name: str) -> str:
    """Another log backup of that name that has begun in the same cluster, as namespace/name; empty if there is none.

    Raises ApiError, TransportError.
    """
    others = (backup for backup in readable(everything(ctx, BACKUPS)) if backup.metadata.uid != ctx.owner.metadata.uid)
    named = (backup for backup in others if backup.metadata.name == name and chains.same_cluster(backup, ctx.model))
    begun = (backup.metadata for backup in named if backup.spec.backup_mode == "log" and backup.status.commit_ts)
    return next((f"{metadata.namespace}/{metadata.name}" for metadata in begun), "")


def _shares(other: Object, path: str, own: StorageProvider) -> bool:
    """True if another Backup has files in the directory, unless it is being deleted together with its files."""
    body = other.decode()
    now: Json = body.get("status") or {}
    try:
        backup = with_backup_defaults(decode(body, Backup))
    except InvalidField:
        return overlap(path, str(now.get("backupPath") or ""))
    theirs = str(now.get("backupPath") or "") or backup_path(backup.spec)
    if not shared(own, path, backup.spec, theirs):
        return False
    is_going = other.metadata.deletion_timestamp is not None and backup.spec.clean_policy == "Delete"
    # a running log backup has files even if its spec has become invalid
    is_nothing = status.holds(now, status.INVALID) and not now.get("backupPath")
    return not is_going and not status.holds(now, status.CLEAN) and not is_nothing
