"""Rules of the storage of backups (backup.md 3.6, 4.5)."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from apis import rclone_options
from apis.problem import Problem
from apis.rclone_options import UnknownOption
from apis.storage_providers import (
    AzblobStorageProvider,
    GcsStorageProvider,
    LocalStorageProvider,
    S3StorageProvider,
    StorageProvider,
)

_EXPORTS = ("s3", "gcs")
"""The providers for archives of Dumpling and TiDB Lightning."""


def check(storage: StorageProvider, field: str, *, archives: bool = False) -> Iterator[Problem]:
    """The problems of the storage at `field`; `archives`: it is for archives of Dumpling and TiDB Lightning."""
    found = list(storage.providers)
    if not found:
        choices = " or ".join(_EXPORTS) if archives else "s3, gcs, azblob or local"
        yield Problem(field, None, f"names no storage; set {choices}")
    if len(found) > 1:
        message = f"only one storage may be set; v1.6 would take {found[0]} and ignore the rest, so remove the others"
        yield Problem(field, found, message)
    elif archives and found and found[0] not in _EXPORTS:
        message = "can't hold the archives of exports; use s3 or gcs, or back up with BR (spec.br)"
        yield Problem(f"{field}.{found[0]}", None, message)
    for name, provider in storage.providers.items():
        yield from _check_prefix(provider.prefix, f"{field}.{name}.prefix")
    if storage.s3 is not None:
        yield from _check_s3(storage.s3, f"{field}.s3", archives=archives)
    if storage.gcs is not None:
        yield from _check_gcs(storage.gcs, f"{field}.gcs")
    if storage.azblob is not None:
        yield from _check_azblob(storage.azblob, f"{field}.azblob")
    if storage.local is not None:
        yield from _check_local(storage.local, f"{field}.local")


def _check_bucket(bucket: str, field: str, what: str = "bucket") -> Iterator[Problem]:
    """The host of BR's URL; a prefix may follow a slash."""
    first = next((part for part in bucket.split("/") if part), "")
    if not first:
        yield Problem(field, None, f"is required; name the {what}")
    elif not _BUCKET.fullmatch(first):
        message = f"can't be a {what}; its name has letters from a to z, digits, dots, dashes and underscores"
        yield Problem(field, bucket, message)
    else:
        yield from _check_prefix(bucket, field)


def _check_prefix(prefix: str, field: str) -> Iterator[Problem]:
    if not {".", ".."}.isdisjoint(prefix.split("/")):
        yield Problem(field, prefix, "must not have . or .. as a directory; write the path without them")


_BUCKET = re.compile(r"[A-Za-z0-9._-]+")


def _check_s3(s3: S3StorageProvider, field: str, *, archives: bool) -> Iterator[Problem]:
    if not s3.provider:
        yield Problem(f"{field}.provider", None, "is required; say which S3 it is, such as aws or ceph")
    yield from _check_bucket(s3.bucket, f"{field}.bucket")
    if archives:
        yield from check_options(s3, field)
    if not s3.endpoint or (archives and s3.provider == "ceph" and "://" not in s3.endpoint):
        return
    yield from _check_endpoint(s3.endpoint, f"{field}.endpoint")


def check_options(s3: S3StorageProvider, field: str) -> Iterator[Problem]:
    """The problems of the options by which archives are copied."""
    try:
        rclone_options.parse(s3.options)
    except UnknownOption as error:
        yield Problem(f"{field}.options", s3.options, str(error))


def _check_endpoint(endpoint: str, field: str) -> Iterator[Problem]:
    scheme, separator, _ = endpoint.partition("://")
    if not separator or not scheme:
        yield Problem(field, endpoint, "has no scheme; put http:// or https:// before the host")
        return
    if " " in endpoint or not endpoint.isprintable():
        yield Problem(field, endpoint, "is no URL; remove white space and control characters")
        return
    try:
        url = urlsplit(endpoint)
        _ = url.port  # raises for anything but a number
    except ValueError:
        yield Problem(field, endpoint, "is no URL; use one such as https://minio.example.com:9000")
        return
    if not url.hostname:
        yield Problem(field, endpoint, "has no host; use a URL such as https://minio.example.com:9000")


def _check_gcs(gcs: GcsStorageProvider, field: str) -> Iterator[Problem]:
    if not gcs.project_id:
        yield Problem(f"{field}.projectId", None, "is required; name the project of the bucket")
    yield from _check_bucket(gcs.bucket, f"{field}.bucket")


def _check_azblob(azblob: AzblobStorageProvider, field: str) -> Iterator[Problem]:
    yield from _check_bucket(azblob.container, f"{field}.container", "container")
    if not azblob.secret_name and not azblob.storage_account:
        message = "is required without a Secret that has the key AZURE_STORAGE_ACCOUNT; name the storage account"
        yield Problem(f"{field}.storageAccount", None, message)
    if not azblob.secret_name and not azblob.sas_token:
        message = "is required without sasToken; name the Secret with the credentials"
        yield Problem(f"{field}.secretName", None, message)


def _check_local(local: LocalStorageProvider, field: str) -> Iterator[Problem]:
    volume, mount = str(local.volume.get("name") or ""), str(local.volume_mount.get("name") or "")
    path = str(local.volume_mount.get("mountPath") or "")
    if volume != mount or not volume:
        message = f"must be the name of the volume, {volume or 'which is missing'}"
        yield Problem(f"{field}.volumeMount.name", mount, message)
    if not path:
        yield Problem(f"{field}.volumeMount.mountPath", None, "is required; name a directory such as /backup")
    elif ":" in path:
        yield Problem(f"{field}.volumeMount.mountPath", path, "must not contain a colon; use another directory")
    elif not path.startswith("/"):
        yield Problem(f"{field}.volumeMount.mountPath", path, "must be absolute; begin it with /")
