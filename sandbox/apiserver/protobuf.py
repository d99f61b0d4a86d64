"""Bodies in Kubernetes' protobuf encoding, which kubectl and client-go send for built-in kinds.

Answers are JSON always: clients that send protobuf accept both. `builtin_protobuf.json` holds the field numbers.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from kube.objects import Json
from kube.resources import Resource
from sandbox.apiserver import schemas

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\0"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_DELETE_OPTIONS = f"{_META}.DeleteOptions"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MEANINGFUL_ZEROS = frozenset(
    {
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "backoffLimit",
        "completions",
        "enableServiceLinks",
        "gracePeriodSeconds",
        "leaseDurationSeconds",
        "maxUnavailable",
        "minAvailable",
        "optional",
        "parallelism",
        "partition",
        "port",
        "privileged",
        "readOnlyRootFilesystem",
        "replicas",
        "revisionHistoryLimit",
        "runAsNonRoot",
        "runAsUser",
        "suspend",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
    }
)
"""Fields that are pointers in Go: their 0 and false are values. The encoding writes all other fields even if unset."""


class Malformed(ValueError):
    """Raised for bytes that are not a protobuf object of a known kind; the message gives the reason."""


def decode(body: bytes) -> Json:
    """The object in a protobuf body in its JSON form. Raises Malformed."""
    try:
        return _object(body)
    except (UnicodeDecodeError, AttributeError, TypeError, msgspec.DecodeError) as error:
        raise Malformed(f"a field holds another wire type than its own: {error}") from error


def _object(body: bytes) -> Json:
    if not body.startswith(_MAGIC):
        raise Malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    type_meta = {number: value.decode() for number, value in _fields(envelope.get(1, b""))}
    api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
    tree = _message(envelope.get(2, b""), _message_name(api_version, kind))
    return {"kind": kind, "apiVersion": api_version} | tree


def _message_name(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        return _DELETE_OPTIONS
    group, _, version = api_version.rpartition("/")
    try:
        definition = schemas.name_of(Resource(group, version, "", kind))
    except KeyError as error:
        raise Malformed(f'no kind "{kind}" is registered for version "{api_version}"') from error
    return definition.replace("io.k8s.", "k8s.io.", 1)


def _message(raw: bytes, name: str) -> Json:
    numbers = _messages().get(name)
    if numbers is None:
        raise Malformed(f"no protobuf encoding of {name} is known")
    known = _properties(name)
    tree: Json = {}
    for number, value in _fields(raw):
        field, type_, *shape = numbers.get(str(number), ("", ""))
        if not field:
            continue
        if shape == ["map"]:
            key, entry = _entry(value, type_)
            tree.setdefault(field, {})[key] = entry
        elif shape == ["repeated"]:
            tree.setdefault(field, []).append(_value(value, type_))
        elif known and field not in known and type_ in _messages():
            # Go embeds this struct, so JSON has its fields in place of the struct
            tree |= _message(value, type_)
        else:
            _set(tree, field, _value(value, type_))
    return tree


def _set(tree: Json, field: str, value: Any) -> None:
    is_zero = value is None or value == "" or (not value and isinstance(value, int))
    if not is_zero or (value is not None and field in _MEANINGFUL_ZEROS):
        tree[field] = value


def _entry(raw: bytes, type_: str) -> tuple[str, Any]:
    parts = dict(_fields(raw))
    return parts.get(1, b"").decode(), _value(parts.get(2, b""), type_)


def _value(value: Any, type_: str) -> Any:
    if scalar := _SCALARS.get(type_):
        return scalar(value)
    if special := _SPECIAL.get(type_):
        return special(dict(_fields(value)))
    return _message(value, type_)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _time(parts: Mapping[int, Any]) -> str | None:
    seconds = _signed(parts.get(1, 0))
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ") if parts else None


def _micro_time(parts: Mapping[int, Any]) -> str | None:
    moment = _EPOCH + timedelta(seconds=_signed(parts.get(1, 0)), microseconds=parts.get(2, 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if parts else None


def _int_or_string(parts: Mapping[int, Any]) -> int | str:
    return parts.get(3, b"").decode() if parts.get(1, 0) else _signed(parts.get(2, 0))


def _raw_json(parts: Mapping[int, Any]) -> Any:
    return msgspec.json.decode(parts[1]) if parts.get(1) else None


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "string": lambda value: value.decode(),
    "bytes": lambda value: base64.b64encode(value).decode(),
    "bool": bool,
    "int32": _signed,
    "int64": _signed,
}
_SPECIAL: Mapping[str, Callable[[Mapping[int, Any]], Any]] = {
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": _raw_json,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": lambda parts: parts.get(1, b"").decode(),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
}


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values in the order of the wire: integers, or bytes for everything with a length."""
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        match tag & 7:
            case 0:
                value, position = _varint(raw, position)
                yield tag >> 3, value
            case 1 | 5 as wire:
                position += 8 if wire == 1 else 4
            case 2:
                size, position = _varint(raw, position)
                if position + size > len(raw):
                    raise Malformed("unexpected EOF")
                yield tag >> 3, raw[position : position + size]
                position += size
            case wire:
                raise Malformed(f"unknown wire type {wire}")


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(raw):
        byte = raw[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise Malformed("unexpected EOF")


@cache
def _messages() -> Mapping[str, Mapping[str, list[str]]]:
    raw = files(__package__).joinpath("builtin_protobuf.json").read_bytes()
    decoded: dict[str, dict[str, list[str]]] = msgspec.json.decode(raw)
    return decoded


@cache
def _properties(name: str) -> frozenset[str]:
    """The JSON fields of a message, empty when it has no definition."""
    definition = schemas.definitions().get(name.replace("k8s.io.", "io.k8s.", 1)) or {}
    return frozenset(definition.get("properties") or ())
