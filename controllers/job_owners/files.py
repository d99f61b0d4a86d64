"""Other users of the files of a backup, read live (backup.md 3.9)."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from apis import tso
from apis.backup_defaulting import with_backup_defaults
from apis.backup_paths import backup_path
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.problem import InvalidField
from apis.restores import Restore
from apis.storage_providers import StorageProvider
from controllers.job_owners import status
from controllers.job_owners.job_owner import JobOwner, M
from kube.errors import NotFound
from kube.objects import Json, Object, condition_of
from kube.resources import Resource
from member.backups.paths import overlap, shared

BEING_REMOVED = "FilesBeingRemoved"
"""The reason of a failure because the files are being removed."""

_BEGUN = (status.SCHEDULED, status.RUNNING, status.SNAPSHOT_RESTORE, status.LOG_RESTORE)


def everything(ctx: JobOwner[M], resource: Resource) -> list[Object]:
    """All objects of a resource in the namespaces of this operator, read live. Raises ApiError, TransportError."""
    try:
        return ctx.runtime.client.list_page(resource, ctx.settings.namespace).items
    except NotFound:  # the CustomResourceDefinition is not installed
        return []


def readable(backups: Iterable[Object]) -> Iterator[Backup]:
    """The Backups that can be decoded, with their defaults."""
    for backup in backups:
        with contextlib.suppress(InvalidField):
            yield with_backup_defaults(decode(backup.decode(), Backup))


def being_removed(backups: Iterable[Object], storages: Sequence[StorageProvider]) -> str:
    """The Backup whose files are being removed from one of `storages`, e.g. "Backup ns/name"; empty if none."""
    for backup in backups:
        if backup.metadata.deletion_timestamp and any(
            _removes_from(backup, storage_provider) for storage_provider in storages
        ):
            return f"Backup {backup.key}"
    return ""


def reads(restore: Object, path: str, own: StorageProvider) -> bool:
    """True if an unfinished Restore reads, or will read, from the directory `path` of a storage.

    A Restore that waits because files are being removed does not count: otherwise both would wait for each other.
    """
    body = restore.decode()
    now = body.get("status") or {}
    has_begun = any(status.holds(now, kind) for kind in _BEGUN)
    if status.holds(now, status.COMPLETE) or status.holds(now, status.FAILED):
        return False
    if status.holds(now, status.INVALID) and not has_begun:
        return False
    if now.get("phase") == status.RETRY_FAILED and _condition(now, status.RETRY_FAILED).get("reason") == BEING_REMOVED:
        return False
    try:
        spec = decode(body, Restore).spec
    except InvalidField:
        return has_begun  # an undecodable Restore does nothing, unless its Job was created before
    sources = (spec, spec.pitr_full_backup_storage_provider)
    return any(shared(own, path, storage_provider, backup_path(storage_provider)) for storage_provider in sources)


def compacts(compact: Object, path: str, own: StorageProvider, until: int | None) -> bool:
    """True if an unfinished CompactBackup rewrites the log in `path`; with `until`, its part before that TSO."""
    body = compact.decode()
    if (body.get("status") or {}).get("state") in (status.COMPLETE, status.FAILED):
        return False
    try:
        spec = decode(body, CompactBackup).spec
        is_meant = until is None or tso.parse(spec.start_ts) < until
        return is_meant and shared(own, path, spec, backup_path(spec))
    except (InvalidField, ValueError):
        return False  # the operator does nothing for an undecodable CompactBackup


def _condition(now: Json, kind: str) -> Json:
    return condition_of(now.get("conditions") or (), kind)


def _removes_from(backup: Object, storage: StorageProvider) -> bool:
    body = backup.decode()
    now = body.get("status") or {}
    if not _condition(now, status.CLEAN):
        return False
    try:
        own = decode(body, Backup).spec
    except InvalidField:
        return overlap(str(now.get("backupPath") or ""), backup_path(storage))
    return shared(own, str(now.get("backupPath") or ""), storage, backup_path(storage))
