"""OpenAPI v2, as far as kubectl reads it: definitions, and which writes take the `fieldValidation` parameter.

kubectl reads it for kinds without a v3 document and for `explain --output plaintext-openapiv2`; older ones know nothing
else. It asks for gnostic's protobuf encoding (google/gnostic-models, openapiv2/OpenAPIv2.proto).
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kube.objects import Json
from sandbox.apiserver import openapi
from sandbox.apiserver.kinds import Kind

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_TYPES = (PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""The media types of the protobuf encoding: what answers carry, and what older clients accept."""

_V3_PREFIX, _PREFIX = "#/components/schemas/", "#/definitions/"
_TEXTS: Mapping[str, int] = {"$ref": 1, "format": 2, "title": 3, "description": 4}
"""The fields of gnostic's Schema that are texts, by their numbers."""
_VENDOR = "x-"
_INT_OR_STRING = "x-kubernetes-int-or-string"


def document(kinds: Iterable[Kind]) -> Json:
    """The document of all kinds, as JSON."""
    groups: dict[str, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault(kind.resource.root.strip("/"), []).append(kind)
    parts = [openapi.version_document(group) for group in groups.values()]
    schemas = {name: node for part in parts for name, node in part["components"]["schemas"].items()}
    return {
        "swagger": "2.0",
        "info": parts[0]["info"],
        "paths": {path: _paths(item) for part in parts for path, item in part["paths"].items()},
        "definitions": {name: _schema(node) for name, node in sorted(schemas.items())},
    }


def _paths(item: Json) -> Json:
    return {method: _operation(operation) for method, operation in item.items()}


def _operation(operation: Json) -> Json:
    if "parameters" not in operation:
        return operation
    parameters = [{"in": each["in"], "name": each["name"], "type": "string"} for each in operation["parameters"]]
    return operation | {"parameters": parameters}


def _schema(node: Json) -> Json:
    """A schema without what v2 does not have: a choice of types is a string, which takes numbers, too."""
    kept: Json = {key: node[key] for key in ("format", "title", "description", "required", "type") if key in node}
    kept |= {key: value for key, value in node.items() if key.startswith(_VENDOR)}
    reference = node.get("$ref") or next((each["$ref"] for each in node.get("allOf", ()) if "$ref" in each), "")
    if reference:
        kept["$ref"] = _PREFIX + reference.removeprefix(_V3_PREFIX)
    if "oneOf" in node and _INT_OR_STRING not in node:
        kept["type"] = "string"
    if "properties" in node:
        kept["properties"] = {name: _schema(inner) for name, inner in node["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in node:
            kept[key] = _schema(node[key]) if isinstance(node[key], dict) else node[key]
    return kept


def encoded(tree: Json) -> bytes:
    """The document in gnostic's protobuf encoding."""
    info = _text(1, tree["info"]["title"]) + _text(2, tree["info"]["version"])
    paths = (_message(2, _text(1, path) + _message(2, _path_item(item))) for path, item in tree["paths"].items())
    definitions = (_message(1, _text(1, name) + _message(2, _node(node))) for name, node in tree["definitions"].items())
    return b"".join(
        (
            _text(1, tree["swagger"]),
            _message(2, info),
            _message(8, b"".join(paths)),
            _message(9, b"".join(definitions)),
        )
    )


_METHODS: Mapping[str, int] = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path_item(item: Json) -> bytes:
    return b"".join(_message(_METHODS[method], _encoded_operation(each)) for method, each in item.items())


def _encoded_operation(operation: Json) -> bytes:
    query = (
        _text(2, each["in"]) + _text(4, each["name"]) + _text(6, each["type"])
        for each in operation.get("parameters", ())
    )
    parameters = (_message(8, _message(1, _message(2, _message(3, each)))) for each in query)
    return b"".join((*parameters, *_extensions(13, operation)))


def _node(node: Json) -> bytes:
    return b"".join(_fields(node))


def _fields(node: Json) -> Iterator[bytes]:
    yield from (_text(number, node[key]) for key, number in _TEXTS.items() if key in node)
    yield from (_text(19, each) for each in node.get("required", ()))
    match node.get("additionalProperties"):
        case dict(inner):
            yield _message(21, _message(1, _node(inner)))
        case True:
            yield _message(21, b"\x10\x01")
    if "type" in node:
        yield _message(22, _text(1, node["type"]))
    if "items" in node:
        yield _message(23, _message(1, _node(node["items"])))
    if "properties" in node:
        named = (_message(1, _text(1, name) + _message(2, _node(each))) for name, each in node["properties"].items())
        yield _message(25, b"".join(named))
    yield from _extensions(31, node)


def _extensions(number: int, node: Json) -> Iterator[bytes]:
    """Vendor extensions, whose values gnostic keeps as YAML, of which JSON is a part."""
    for name, value in node.items():
        if name.startswith(_VENDOR):
            yield _message(number, _text(1, name) + _message(2, _text(2, msgspec.json.encode(value).decode())))


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
