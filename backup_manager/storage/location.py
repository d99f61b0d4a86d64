"""The location of a backup's objects (backup.md 2.1, 2.2, 2.5)."""

import enum
from dataclasses import dataclass, field
from urllib.parse import urlsplit


class Kind(enum.Enum):
    """The protocols; the value is the scheme of BR's URLs."""

    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Location:
    """A bucket, and the prefix in it that belongs to one backup.

    `bucket` is Azure's container, or the absolute path of a mounted volume. `prefix` has no slash at either end; empty
    means the whole bucket. `flavour` is `spec.s3.provider`: aws, ceph, alibaba, … `encryption_key` is the id of a KMS
    key. The only credential is `sas_token`, which Azure's spec may contain; it is never shown.
    """

    kind: Kind
    bucket: str
    prefix: str = ""
    region: str = ""
    endpoint: str = ""
    flavour: str = ""
    path_style: bool = True
    encryption: str = ""
    encryption_key: str = ""
    account: str = ""
    sas_token: str = field(default="", repr=False)

    def __str__(self) -> str:
        """The URL for messages; with the endpoint if that determines the bucket's owner."""
        url = f"{self.kind.value}://{self.path}"
        return f"{url} at {self.endpoint}" if self.endpoint else url

    @property
    def path(self) -> str:
        """Bucket and prefix."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    @property
    def provider(self) -> str:
        """The usual name of the service."""
        return {
            Kind.S3: f"S3 ({self.flavour})" if self.flavour else "S3",
            Kind.GCS: "Google Cloud Storage",
            Kind.AZURE: "Azure Blob Storage",
            Kind.LOCAL: "a local volume",
        }[self.kind]

    @property
    def field(self) -> str:
        """The field of the spec with the location."""
        return "spec.azblob" if self.kind is Kind.AZURE else f"spec.{self.kind.value}"


def split(bucket: str, prefix: str) -> tuple[str, str]:
    """The effective bucket and prefix (backup.md 2.2): `bucket: a/b` is the prefix `b` in the bucket `a`."""
    first, *rest = [part for part in f"{bucket}/{prefix}".split("/") if part] or [""]
    return first, "/".join(rest)


_VIRTUAL_HOSTED = frozenset({"alibaba", "netease"})
"""The services that accept a bucket only in the host name (backup.md 2.5)."""


def default_path_style(flavour: str) -> bool:
    """True if the bucket is in the URL's path by default."""
    return flavour.lower() not in _VIRTUAL_HOSTED


def endpoint_problem(endpoint: str) -> str:
    """What is wrong with the URL of a service; empty if it is usable."""
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError as error:
        return f"{endpoint!r} is not a URL: {error}"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return f"{endpoint!r} is not a URL such as https://s3.example.com:9000"
    if parts.username or parts.password:
        return "it holds a user or a password; these belong into the Secret"
    return ""
