"""Negotiation of content types for answers and bodies."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache

import msgspec
import yaml

from kube.objects import Json
from kube.yaml_tree import load_yaml
from sandbox.apiserver import protobuf
from sandbox.apiserver.refusals import Refusal, bad_request, not_acceptable, unsupported_media_type

JSON = "application/json"
YAML = "application/yaml"
_OFFERED = (JSON, YAML, protobuf.MEDIA_TYPE)


_DECODERS: Mapping[str, Callable[[bytes], object]] = {
    JSON: msgspec.json.decode,
    YAML: load_yaml,
    protobuf.MEDIA_TYPE: protobuf.decode,
}


_UNREADABLE = (
    *(msgspec.DecodeError, yaml.YAMLError, protobuf.Malformed),
    *(RecursionError, ValueError, LookupError, OverflowError, TypeError),
)
"""The exceptions of decoders for malformed bytes: nested too deeply, numbers too long, unknown tags."""

_SPOKEN = (JSON, YAML, "application/*", "*/*", "*")


class Form(Enum):
    """The forms of an answer that holds objects."""

    OBJECT = "object"
    TABLE = "table"
    METADATA = "metadata"


_FORMS = {
    "": Form.OBJECT,
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.METADATA,
    "PartialObjectMetadataList": Form.METADATA,
}


def form(accept: str) -> Form:
    """The first form of an Accept header that the server speaks. Raises Refusal (406)."""
    for media_type, parameters in _alternatives(accept):
        if media_type not in _SPOKEN:
            continue
        found = _FORMS.get(parameters.get("as", ""))
        if found and (found is Form.OBJECT or parameters.get("v") == "v1"):
            return found
    raise not_acceptable(_OFFERED[:2])


def prefers_yaml(accept: str) -> bool:
    """True if YAML is the first supported media type of an Accept header."""
    return next((media_type for media_type, _ in _alternatives(accept) if media_type in _SPOKEN), "") == YAML


def accepts_as(accept: str, wanted: str) -> str:
    """The version `v` in which the client accepts JSON as `wanted`; empty if it does not."""
    for media_type, parameters in _alternatives(accept):
        if media_type == JSON and parameters.get("as") == wanted:
            return parameters.get("v", "")
    return ""


def body_tree(body: bytes | None, content_type: str, kind: str) -> Json:
    """The object of a body in JSON, YAML or protobuf; `kind` names it in refusals. Raises Refusal (400, 415)."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    if media_type not in _OFFERED:
        raise unsupported_media_type(_OFFERED)
    tree = decoded(body or b"", media_type, kind)
    if not isinstance(tree, dict):
        raise _unrecognized(kind, "it is no object")
    for name in ("apiVersion", "kind"):
        if not isinstance(tree.get(name), str | None):
            raise _unrecognized(kind, f"{name} is no string")
    return tree


def decoded(body: bytes, media_type: str, kind: str) -> object:
    """The decoded body. Raises Refusal (400)."""
    try:
        return _DECODERS[media_type](body)
    except _UNREADABLE as error:
        raise _unrecognized(kind, str(error)) from error


def _unrecognized(kind: str, why: str) -> Refusal:
    what = f"the object provided is unrecognized (must be of type {kind})"
    return bad_request(f"{what}: couldn't get version/kind; json parse error: {why}")


@lru_cache(maxsize=64)
def _alternatives(accept: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The media types of an Accept header with their parameters; clients send the same few headers again and again."""
    found = []
    for alternative in (accept or "*/*").split(","):
        media_type, *parameters = (part.strip() for part in alternative.split(";"))
        found.append((media_type, dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)))
    return tuple(found)
