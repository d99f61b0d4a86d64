"""The place of a backup's files: `status.backupPath` (backup.md 2.2)."""

from apis.storage_providers import (
    AzblobStorageProvider,
    GcsStorageProvider,
    LocalStorageProvider,
    S3StorageProvider,
    StorageProvider,
)


def backup_path(storage: StorageProvider) -> str:
    """The directory of a BR backup as in its status, or the archive to import; empty if none is named."""
    match provider := storage.provider:
        case S3StorageProvider():
            return _named("s3://", joined(provider.bucket, provider.prefix) or provider.path.removeprefix("s3://"))
        case GcsStorageProvider():
            if not provider.bucket:
                return _named("gcs://", provider.path.removeprefix("gcs://"))
            return f"gcs://{joined(provider.bucket, provider.prefix)}/"
        case AzblobStorageProvider():
            return f"azure://{joined(provider.container, provider.prefix)}/"
        case LocalStorageProvider():
            mount = str(provider.volume_mount.get("mountPath") or "")
            return f"local:///{joined(mount, provider.prefix)}"
    return ""


def is_at(path: str, storage: StorageProvider) -> bool:
    """True if a path of a status is the place that a spec names, which may have been edited since."""
    return bool(path) and path == backup_path(storage)


def _named(scheme: str, path: str) -> str:
    """The URL; empty without a path, which would mean the whole bucket."""
    return f"{scheme}{path}" if path else ""


def joined(*parts: str) -> str:
    """A path of these parts, without empty ones."""
    return "/".join(piece for part in parts for piece in part.split("/") if piece)
