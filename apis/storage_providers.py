"""The storage of Backup, Restore, BackupSchedule, CompactBackup (backup.md 2.1).

Object storage by bucket and prefix, or a volume that is mounted into the pod of the Job.
"""

from typing import TypeAlias

from apis.embedded import Mount, Volume
from apis.shared import Model


class S3StorageProvider(Model, kw_only=True):
    """Amazon S3, or what speaks its protocol."""

    provider: str
    region: str = ""
    path: str = ""
    bucket: str = ""
    endpoint: str = ""
    storage_class: str = ""
    acl: str = ""
    secret_name: str = ""
    prefix: str = ""
    sse: str = ""
    options: list[str] = []
    force_path_style: bool | None = None


class GcsStorageProvider(Model, kw_only=True):
    """Google Cloud Storage."""

    project_id: str
    location: str = ""
    path: str = ""
    bucket: str = ""
    storage_class: str = ""
    object_acl: str = ""
    bucket_acl: str = ""
    secret_name: str = ""
    prefix: str = ""


class AzblobStorageProvider(Model, kw_only=True):
    """Azure Blob Storage."""

    path: str = ""
    container: str = ""
    access_tier: str = ""
    secret_name: str = ""
    storage_account: str = ""
    sas_token: str = ""
    prefix: str = ""


class LocalStorageProvider(Model, kw_only=True):
    """A volume that is mounted into the pod of the Job and, at the same path, into the pods of TiKV."""

    volume: Volume
    volume_mount: Mount
    prefix: str = ""


Provider: TypeAlias = S3StorageProvider | GcsStorageProvider | AzblobStorageProvider | LocalStorageProvider


class StorageProvider(Model, kw_only=True):
    """The place of a backup: exactly one provider is set."""

    s3: S3StorageProvider | None = None
    gcs: GcsStorageProvider | None = None
    azblob: AzblobStorageProvider | None = None
    local: LocalStorageProvider | None = None

    @property
    def provider(self) -> Provider | None:
        """The first that is set, which is the one that v1.6 uses."""
        return next(iter(self.providers.values()), None)

    @property
    def providers(self) -> dict[str, Provider]:
        """All providers that are set, by field name, in v1.6's order."""
        found = {"s3": self.s3, "gcs": self.gcs, "azblob": self.azblob, "local": self.local}
        return {name: provider for name, provider in found.items() if provider is not None}
