"""Images and the versions they carry (objects.md 3.2, defaults-and-validation.md 8.1, lifecycle.md F25)."""

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

Order: TypeAlias = tuple[float, float, float]
"""Compares versions: major, minor, patch."""

NEWEST: Order = (math.inf, math.inf, math.inf)
"""The order of a version that is not a number: `latest`, `nightly`, a branch, a hash (F25)."""

_CHECKPOINTS_FROM = "v6.5.1"
"""The first version whose BR continues an interrupted run (backup.md 7.4)."""

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:[-+].*)?")

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DOMAIN = (
    r"(?:[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])"
)
_TAG = r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*)(?::{_TAG})?(?:@{_DIGEST})?", re.ASCII
)
"""The syntax of image references in container runtimes (distribution/reference)."""
_LONGEST_REPOSITORY = 255


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed image reference: `repository[:tag][@digest]`."""

    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        """The reference as a container runtime reads it."""
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{tag}{digest}"


def parse(image: str) -> Reference:
    """Parse a reference. A colon before the last slash belongs to the registry's port, not to a tag."""
    name, _, digest = image.partition("@")
    host, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return Reference(f"{host}{slash}{last}", tag, digest)


def is_reference(image: str) -> bool:
    """True if a container runtime can read it as an image."""
    match = _REFERENCE.fullmatch(image)
    return match is not None and len(match["name"]) <= _LONGEST_REPOSITORY


def is_tag(version: str) -> bool:
    """True if it can be the tag of an image."""
    return re.fullmatch(_TAG, version, re.ASCII) is not None


def with_version(base_image: str, version: str) -> str:
    """`base_image` at `version`, which replaces an existing tag; unchanged if `version` is empty."""
    if not base_image or not version:
        return base_image
    reference = parse(base_image)
    return str(Reference(reference.repository, version, reference.digest))


def version_of(image: str) -> str:
    """The tag of an image, `latest` without one."""
    return parse(image).tag or "latest"


def order(version: str) -> Order:
    """The sort key of a version. Suffixes such as `-alpha` do not count; a version that is not a number is NEWEST."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return NEWEST
    major, minor, patch = match.groups("0")
    return int(major), int(minor), int(patch)


def knows_checkpoints(version: str) -> bool:
    """True if BR of that version resumes an interrupted run; False if the version is unknown."""
    return order(version) != NEWEST and at_least(version, _CHECKPOINTS_FROM)


def at_least(version: str, minimum: str) -> bool:
    """True if `version` is `minimum` or newer, by `order`."""
    return order(version) >= order(minimum)
