"""Checks of a place before a backup: it answers, is writable, and is free."""

import contextlib

from backup_manager.storage.deletion import is_empty
from backup_manager.storage.errors import AccessDenied, BadLocation
from backup_manager.storage.objects import Storage

PROBE = "backup-manager.probe"
"""The object that tests writing; it is empty, and deleted immediately."""


def require_usable(storage: Storage) -> None:
    """Raise StorageError unless objects can be listed and written; backups need no deletion."""
    is_empty(storage)
    storage.write(PROBE, b"")
    with contextlib.suppress(AccessDenied):
        # a bucket that keeps everything is a good place for backups
        storage.delete([PROBE])


def require_free(storage: Storage) -> None:
    """Raise BadLocation if there are objects, which this backup would mix with; other StorageErrors.

    Empty objects do not count: consoles create folders as such, and a killed pod leaves its probe.
    """
    for page in storage.pages():
        for stored in page:
            if stored.size:
                why = f"it is not empty ({stored.key} is there); give each Backup a prefix of its own"
                raise BadLocation("write a backup to", storage.location, why)
