"""One sync of a Backup: from the key to its next step (backup.md 3.4, 3.5)."""

import structlog

from apis.backup_defaulting import with_backup_defaults
from apis.backups import Backup
from apis.decoding import decode
from apis.problem import InvalidField
from controllers.backup import cleaning, making, status
from controllers.backup.context import BackupCaches, BackupContext
from controllers.controller import Result
from controllers.errors import RequeueError
from controllers.key_locks import RETRY_AFTER
from controllers.memory import Memory
from controllers.own_write import OwnWrite
from controllers.runtime import Runtime
from controllers.stages import EXPECTED
from controllers.status_patch import patch_status
from kube.objects import Object
from kube.resources import BACKUPS
from member.backups.pods import ManagerSettings

log = structlog.get_logger(__name__)

_UNSEEN_WRITE_DELAY = 0.1
"""Seconds until the next try when the cache does not show our own last write yet (F6)."""


class BackupSync:
    """Carries Backups out. Safe for use by many workers, one per key."""

    def __init__(self, caches: BackupCaches, runtime: Runtime, settings: ManagerSettings) -> None:
        self._caches = caches
        self._runtime = runtime
        self._settings = settings
        self._writes = Memory(OwnWrite)

    def __call__(self, key: str) -> Result | None:
        """Sync one Backup. Raises RequeueError for what is retried with back-off."""
        with self._runtime.key_locks.try_lock(BACKUPS, key) as mine:
            if not mine:
                return Result(requeue_after=RETRY_AFTER)
            namespace, _, name = key.rpartition("/")
            owner = self._caches.backups.get(namespace, name)
            if owner is None:
                self._writes.forget(key)
                return None
            if self._writes.of(key).is_unseen(owner):
                return Result(requeue_after=_UNSEEN_WRITE_DELAY)
            try:
                return self._sync(key, owner)
            except EXPECTED as error:
                log.warning("backup can't be synced, trying again", error=str(error))
                raise RequeueError(str(error)) from error

    def _sync(self, key: str, owner: Object) -> Result | None:
        try:
            backup = with_backup_defaults(decode(owner.decode(), Backup))
        except InvalidField as error:
            before = owner.decode().get("status") or {}
            now = self._runtime.clock.wall()
            after = status.with_condition(before, status.INVALID, now, "InvalidSpec", str(error))
            patch_status(self._runtime.applier, BACKUPS, owner, before, after)
            return None
        ctx = BackupContext(owner, backup, self._caches, self._runtime, self._settings, self._writes.of(key))
        return cleaning.sync(ctx) if owner.metadata.deletion_timestamp else making.sync(ctx)
