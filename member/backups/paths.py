"""Whose the files of a backup are, besides (backup.md 3.9)."""

from apis.backup_paths import joined
from apis.shared import Json
from apis.storage_providers import StorageProvider

_HOW_MOUNTED = ("readOnly", "fsType", "type")
"""Fields of the sources of volumes that do not say which one it is."""


def overlap(one: str, other: str) -> bool:
    """Whether what is below one path is below the other as well: then removing one takes from the other."""
    if not one or not other:
        return False
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)


def shared(one: StorageProvider, path: str, other: StorageProvider, other_path: str) -> bool:
    """Whether two directories, as `status.backupPath` names them, may have files in common."""
    return same_store(one, other) and overlap(_in_store(one, path), _in_store(other, other_path))


def same_store(one: StorageProvider, other: StorageProvider) -> bool:
    """Whether two objects may mean the same buckets or volume; when in doubt they do: an endpoint has many names."""
    if one.local is not None and other.local is not None:
        return _source(one.local.volume) == _source(other.local.volume)
    return True


def _source(volume: Json) -> Json:
    """What a volume is, however it is called and mounted."""
    return {
        kind: {key: value for key, value in (source or {}).items() if key not in _HOW_MOUNTED}
        for kind, source in volume.items()
        if kind != "name"
    }


def _in_store(storage: StorageProvider, path: str) -> str:
    """A path from where the storage begins: a volume may be mounted at two places. All of it, when in doubt."""
    local = storage.local
    if not path or local is None or storage.provider is not local:
        return path
    mount, names = local.volume_mount, joined(path.removeprefix("local://")).split("/")
    above = joined(str(mount.get("mountPath") or "")).split("/")
    if names[: len(above)] != above or mount.get("subPathExpr"):
        return "local:"
    return joined("local:", str(mount.get("subPath") or ""), *names[len(above) :])
