"""From the storage of a spec to its location, to `status.backupPath` and to BR's flags (backup.md 2.2, 2.4). Pure."""

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote, urlencode

from apis import backup_paths
from apis.backup_shared import JobSpec
from apis.storage_providers import (
    AzblobStorageProvider,
    GcsStorageProvider,
    LocalStorageProvider,
    Provider,
    S3StorageProvider,
    StorageProvider,
)
from backup_manager.storage.location import Kind, Location, default_path_style, split


class UnknownStorage(Exception):
    """Raised for a spec without a storage."""

    def __init__(self) -> None:
        super().__init__("storage unknown not supported yet: set one of spec.s3, spec.gcs, spec.azblob, spec.local")


class Elsewhere(Exception):
    """Raised for a URL outside the storage of a spec."""


def location_of(storage: StorageProvider) -> Location:
    """The location of a spec's storage. Raises UnknownStorage."""
    match _provider(storage):
        case S3StorageProvider() as s3:
            style = default_path_style(s3.provider) if s3.force_path_style is None else s3.force_path_style
            endpoint = f"http://{s3.endpoint}" if _needs_scheme(s3) else s3.endpoint
            return Location(
                Kind.S3,
                *split(s3.bucket, s3.prefix),
                region=s3.region,
                endpoint=endpoint,
                flavour=s3.provider,
                path_style=style,
                encryption=_br_option(storage, "s3.sse") or s3.sse,
                encryption_key=_br_option(storage, "s3.sse-kms-key-id"),
            )
        case GcsStorageProvider() as gcs:
            return Location(Kind.GCS, *split(gcs.bucket, gcs.prefix))
        case AzblobStorageProvider() as azblob:
            place = split(azblob.container, azblob.prefix)
            return Location(Kind.AZURE, *place, account=azblob.storage_account, sas_token=azblob.sas_token)
        case LocalStorageProvider() as local:
            return Location(Kind.LOCAL, _mount_path(local), "/".join(_parts(local.prefix)))


def _br_option(storage: StorageProvider, name: str) -> str:
    """The value of a user's BR option for which v1.6 has no field; the last one counts."""
    options = storage.br.options if isinstance(storage, JobSpec) and storage.br else []
    found = (option.partition("=")[2] for option in reversed(options) if option.startswith(f"--{name}="))
    return next(found, "")


def location_at(storage: StorageProvider, url: str) -> Location:
    """The place in a `status.backupPath`, wherever the spec points now; the spec gives the bucket's service.

    Raises Elsewhere, UnknownStorage.
    """
    location = location_of(storage)
    scheme, _, path = url.partition("://")
    if scheme != location.kind.value:
        raise Elsewhere(f"{url!r} is not in {location.field}")
    if location.kind is not Kind.LOCAL:
        bucket, prefix = split("", path)
        return replace(location, bucket=bucket, prefix=prefix)
    above, names = _parts(location.bucket), _parts(path)
    if names[: len(above)] != above:
        raise Elsewhere(f"{url!r} is not below spec.local.volumeMount.mountPath, {location.bucket}")
    return replace(location, prefix="/".join(names[len(above) :]))


def archive_at(storage: StorageProvider, url: str) -> tuple[Location, str]:
    """The directory and the name of an archive. Raises like `location_at`."""
    place = location_at(storage, url)
    directory, _, name = place.prefix.rpartition("/")
    if not name:
        raise Elsewhere(f"{url!r} is no archive in {place.field}")
    return replace(place, prefix=directory), name


def backup_path(storage: StorageProvider) -> str:
    """The value of `status.backupPath`. Raises UnknownStorage."""
    _provider(storage)
    return backup_paths.backup_path(storage)


def storage_flags(storage: StorageProvider) -> list[str]:
    """`--storage` and its options, in v1.6's order. Raises UnknownStorage."""
    url = storage_url(storage)
    match _provider(storage):
        case S3StorageProvider() as s3:
            if s3.force_path_style is not None:
                url += f"?force-path-style={_go(s3.force_path_style)}"
            options = [
                ("s3.region", s3.region),
                ("s3.provider", s3.provider),
                ("s3.endpoint", s3.endpoint),
                ("s3.sse", s3.sse),
                ("s3.acl", s3.acl),
                ("s3.storage-class", s3.storage_class),
            ]
        case GcsStorageProvider() as gcs:
            options = [("gcs.storage-class", gcs.storage_class), ("gcs.predefined-acl", gcs.object_acl)]
        case AzblobStorageProvider() as azblob:
            options = [("azblob.access-tier", azblob.access_tier)]
        case LocalStorageProvider():
            options = []
    return [f"--storage={url}", *given(options)]


def storage_url(storage: StorageProvider) -> str:
    """BR's URL of a storage, including Azure's SAS token. Raises UnknownStorage.

    Special characters are escaped: without this, v1.6's BR writes to another directory than v1.6 reads.
    """
    url = _SPECIAL.sub(lambda found: quote(found[0]), backup_path(storage))
    if (azblob := storage.azblob) is None or storage.provider is not azblob:
        return url
    query = {"account-name": azblob.storage_account, "sas-token": azblob.sas_token}
    encoded = urlencode({name: value for name, value in sorted(query.items()) if value})
    return f"{url}?{encoded}" if encoded else url


_SPECIAL = re.compile(r"[%?#\x00-\x1f\x7f]")


def given(options: Iterable[tuple[str, str]]) -> list[str]:
    """The flags for the options with a value."""
    return [f"--{name}={value}" for name, value in options if value]


def _provider(storage: StorageProvider) -> Provider:
    if storage.provider is None:
        raise UnknownStorage
    return storage.provider


def _needs_scheme(s3: S3StorageProvider) -> bool:
    """True for an address of Ceph without a scheme, which v1.6 accepts (backup.md 2.3)."""
    return s3.provider == "ceph" and bool(s3.endpoint) and "://" not in s3.endpoint


def _mount_path(local: LocalStorageProvider) -> str:
    return str(local.volume_mount.get("mountPath", ""))


def _joined(*parts: str) -> str:
    return "/".join(_parts(*parts))


def _parts(*parts: str) -> list[str]:
    return [part for part in "/".join(parts).split("/") if part]


def _go(value: bool) -> str:
    return "true" if value else "false"
