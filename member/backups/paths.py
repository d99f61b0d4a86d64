"""The files that several backups may share (backup.md 3.9)."""

from apis.backup_paths import joined
from apis.shared import Json
from apis.storage_providers import StorageProvider

_HOW_MOUNTED = ("readOnly", "fsType", "type")
"""Fields of volume sources that do not identify the volume."""


def overlap(one: str, other: str) -> bool:
    """True if one path contains the other, so that deleting one deletes files of the other."""
    if not one or not other:
        return False
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)


def shared(one: StorageProvider, path: str, other: StorageProvider, other_path: str) -> bool:
    """True if two directories, in the format of `status.backupPath`, may share files."""
    return same_store(one, other) and overlap(_in_store(one, path), _in_store(other, other_path))


def same_store(one: StorageProvider, other: StorageProvider) -> bool:
    """True if two objects may use the same bucket or volume. Buckets count as the same: an endpoint has many names."""
    if one.local is not None and other.local is not None:
        return _source(one.local.volume) == _source(other.local.volume)
    return True


def _source(volume: Json) -> Json:
    """The identity of a volume, without its name and mount options."""
    return {
        kind: {key: value for key, value in (source or {}).items() if key not in _HOW_MOUNTED}
        for kind, source in volume.items()
        if kind != "name"
    }


def _in_store(storage: StorageProvider, path: str) -> str:
    """A path relative to the root of the storage, because a volume may be mounted at two places.

    If the relative path is unknown, the root itself.
    """
    local = storage.local
    if not path or local is None or storage.provider is not local:
        return path
    mount, names = local.volume_mount, joined(path.removeprefix("local://")).split("/")
    above = joined(str(mount.get("mountPath") or "")).split("/")
    if names[: len(above)] != above or mount.get("subPathExpr"):
        return "local:"
    return joined("local:", str(mount.get("subPath") or ""), *names[len(above) :])
