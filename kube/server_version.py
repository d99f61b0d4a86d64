"""The version of the API server."""

import re

import msgspec

from kube.client import Client


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


_DECODER = msgspec.json.Decoder(_Version)
_NUMBER = re.compile(r"\d+")


def server_version(client: Client) -> tuple[int, int]:
    """Major and minor version, read live; clouds write the minor one as `29+`. Raises ApiError, TransportError."""
    version = client.get_as("/version", _DECODER)
    major, minor = (_NUMBER.match(text) for text in (version.major, version.minor))
    return (int(major.group()) if major else 0, int(minor.group()) if minor else 0)
