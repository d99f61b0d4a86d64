"""The content of image registries: rules for names and tags that can be pulled.

Images of TiDB are known: their names, in the vendor's namespace or under their own name in any registry or mirror, and
tags that look like releases. All other images exist.
"""

import re
from functools import lru_cache
from typing import TypeAlias

from apis.components import component_types

_VENDOR = "pingcap"
_SERVERS = frozenset(row.default_image.rpartition("/")[2] for row in component_types() if row.default_image)
_TOOLS = (
    "advanced-statefulset",
    "br",
    "dm",
    "dumpling",
    "ng-monitoring",
    "tidb-backup-manager",
    "tidb-control",
    "tidb-dashboard",
    "tidb-debug",
    "tidb-lightning",
    "tidb-monitor-initializer",
    "tidb-monitor-reloader",
    "tidb-operator",
)
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:localhost(?::\d+)?|[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+(?::\d+)?|[a-zA-Z0-9-]+:\d+)"
_REFERENCE = re.compile(
    rf"(?:{_HOST}/)?(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@sha256:[0-9a-f]{{64}})?"
)
_BEFORE_RELEASE = r"-(?:alpha|beta|rc|dmr|pre|nightly)(?:\.?\d+)?(?:-nightly)?"
_OF_A_DAY = r"-20\d{6}(?:-[0-9a-f]{7,40})?"
_RELEASE = re.compile(rf"v?(\d+)\.(\d+)\.(\d+)(?:{_BEFORE_RELEASE}|{_OF_A_DAY})?", re.IGNORECASE)
_MOVING = ("latest", "nightly")
_MAJORS = range(1, 10)
_MINORS = range(10)
_PATCHES = range(31)
"""The patch releases of TiDB and its operator that exist or may exist soon."""

Trouble: TypeAlias = tuple[str, str]
"""The reason and message of a container that waits for its image."""

INVALID = "InvalidImageName"
FAILED = "ErrImagePull"


@lru_cache(maxsize=1024)
def trouble(image: str) -> Trouble | None:
    """The reason and message of a failed pull; None if the image can be pulled."""
    match = _REFERENCE.fullmatch(image)
    if match is None:
        parsed = f'couldn\'t parse image name "{image}": invalid reference format'
        return INVALID, f'Failed to apply default image tag "{image}": {parsed}'
    *parents, name = match["path"].split("/")
    name = name.removesuffix("-enterprise")
    if parents[-1:] == [_VENDOR] and name not in (*_SERVERS, *_TOOLS):
        denied = "server message: insufficient_scope: authorization failed"
        return _failed(image, f"pull access denied, repository does not exist or may require authorization: {denied}")
    if name in _SERVERS or parents[-1:] == [_VENDOR]:
        return None if match["digest"] or _is_released(match["tag"] or "latest") else not_found(image)
    return None


def not_found(image: str) -> Trouble:
    """The reason and message for a missing image."""
    return _failed(image, f"{image}: not found", "NotFound")


def foreign(image: str) -> Trouble:
    """The reason and message for an image for other architectures only."""
    return _failed(image, "no match for platform in manifest: not found", "NotFound")


def _failed(image: str, why: str, code: str = "Unknown") -> Trouble:
    """The failure in containerd's words."""
    resolving = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}"'
    return FAILED, f"rpc error: code = {code} desc = {resolving}: {why}"


def _is_released(tag: str) -> bool:
    if tag in _MOVING:
        return True
    match = _RELEASE.fullmatch(tag)
    if match is None:
        return False
    major, minor, patch = map(int, match.groups())
    return major in _MAJORS and minor in _MINORS and patch in _PATCHES
