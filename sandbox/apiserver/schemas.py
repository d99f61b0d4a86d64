"""The fields of the built-in kinds, from the OpenAPI v3 documents of Kubernetes 1.36.

`builtin_schemas.json` has the definitions of the served kinds without descriptions, one per line. They determine which
fields exist, how lists merge, and the documents for kubectl.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from kube.objects import Json
from kube.resources import Resource
from sandbox.apiserver.refusals import bad_request
from sandbox.quantities import QUANTITY, canonical, is_quantity

PRESERVE = "x-kubernetes-preserve-unknown-fields"
_NONE: Json = {}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KIND = "x-kubernetes-group-version-kind"


@cache
def definitions() -> Mapping[str, Json]:
    """All definitions by their full names."""
    raw = files(__package__).joinpath("builtin_schemas.json").read_bytes()
    decoded: dict[str, Json] = msgspec.json.decode(raw)
    return decoded


def resolve(node: Json) -> Json:
    """The definition that a node refers to, or the node itself."""
    name = node.get("$ref")
    return definitions()[name] if name else node


def object_meta() -> Json:
    """The definition of metadata."""
    return definitions()[_META]


def name_of(resource: Resource) -> str:
    """The full name of the definition of a built-in kind."""
    return _names()[(resource.group, resource.version, resource.kind)]


def of(resource: Resource) -> Json:
    """The definition of a built-in kind."""
    return definitions()[name_of(resource)]


def drop_unknown(tree: Json, resource: Resource) -> list[str]:
    """Drop the unknown fields of a built-in kind, in place; return their paths. Raises Refusal (400).

    A spec without unknown fields is remembered and not checked again, because most writes change other parts.
    """
    spec = (resource, msgspec.json.encode(tree.get("spec")))
    parts = {name: value for name, value in tree.items() if name != "spec" or spec not in _FAULTLESS}
    check_types(parts, resource)
    unknown: list[str] = []
    pruned = prune(parts, of(resource), "", unknown)
    if "spec" in pruned and pruned["spec"] == parts["spec"]:
        _remember(spec)
    for name in parts:
        if name in pruned:
            tree[name] = pruned[name]
        else:
            del tree[name]
    return unknown


_FAULTLESS: set[tuple[Resource, bytes]] = set()
"""Specs without unknown fields: their kind and JSON."""
_MANY = 2000


def _remember(spec: tuple[Resource, bytes]) -> None:
    if len(_FAULTLESS) >= _MANY:
        _FAULTLESS.clear()
    _FAULTLESS.add(spec)


def prune(value: Any, node: Json, path: str, unknown: list[str]) -> Any:
    """The value without nulls, empty maps and unknown fields, whose paths are added to `unknown`."""
    node = resolve(node)
    if isinstance(value, list):
        items = node.get("items") or {PRESERVE: True}
        zero = _ZEROS.get(resolve(items).get("type", ""))
        present = (zero if item is None else item for item in value)
        return [prune(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(present)]
    if not isinstance(value, dict) or _is_open(node):
        return value
    kept: Json = {}
    properties = node.get("properties") or _NONE
    for name, inner in value.items():
        if inner is None:
            continue
        property_ = properties.get(name) or property_of(node, name)
        if property_ is None:
            unknown.append(_place(path, name))
        elif isinstance(inner, _SCALARS):
            kept[name] = canonical(str(inner)) if _is_quantity(property_) else inner
        elif inner or not _is_map(property_):
            kept[name] = prune(inner, property_, _place(path, name), unknown)
    return kept


def _place(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_ZEROS: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
"""Go's value for a null in a list, by the type of the items."""


def _is_quantity(node: Json) -> bool:
    """True if Go normalises the text of a value of this type."""
    return "$ref" in node and str(node["$ref"]).endswith(".Quantity")


def property_of(node: Json, name: str) -> Json | None:
    """The schema of a field, or None if it does not exist."""
    properties = node.get("properties")
    found = properties.get(name) if properties else None
    if found is None:
        found = node.get("additionalProperties")
    if found is True:
        return {PRESERVE: True}
    return found or None


def check_types(tree: Json, resource: Resource, *, only_metadata: bool = False) -> None:
    """Raises Refusal (400), in the words of Go's decoder, for the first field with a wrong JSON type."""
    if only_metadata:
        error = _type_error(tree["metadata"], object_meta(), "ObjectMeta", "")
    else:
        error = _type_error(tree, of(resource), resource.kind, "")
    if error:
        version = resource.version
        raise bad_request(f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: {error}')


def _is_open(node: Json) -> bool:
    return not node.get("properties") and not node.get("additionalProperties")


def _is_map(node: Json) -> bool:
    """True for a map with user-defined keys, which Go omits if it is empty (unlike an empty struct)."""
    return bool(node.get("additionalProperties"))


def _type_error(value: Any, node: Json, owner: str, path: str) -> str:
    """The first error, or empty."""
    if "$ref" in node:
        if (name := node["$ref"].rpartition(".")[2]) in _UNIONS:
            return _UNIONS[name](value, owner, path)
        owner, node = name, resolve(node)
    type_ = node.get("type")
    if value is None or type_ is None:
        return ""
    if not _has_type(value, type_):
        return _cannot_unmarshal(_go_value(value), owner, path, _go_type(node))
    if isinstance(value, list | dict):
        return _inner_error(value, node, owner, path)
    if type_ == "integer" and not _fits(value, node):
        return _cannot_unmarshal(f"number {value}", owner, path, _go_type(node))
    wrong = _not_base64(value) if node.get("format") == "byte" else None
    return "" if wrong is None else f"illegal base64 data at input byte {wrong}"


def _inner_error(value: list[Any] | Json, node: Json, owner: str, path: str) -> str:
    """The first error in a list or an object, or empty."""
    if isinstance(value, list):
        items = node.get("items") or {}
        return next(filter(None, (_type_error(item, items, owner, path) for item in value)), "")
    properties = node.get("properties") or _NONE
    for name, inner in value.items():
        property_ = properties.get(name) or property_of(node, name) or _NONE
        if isinstance(inner, str) and property_.get("type") == "string" and "format" not in property_:
            # text in a field that accepts any text, as most fields do
            continue
        if error := _type_error(inner, property_, owner, _place(path, name) if properties else path):
            return error
    return ""


def _cannot_unmarshal(value: str, owner: str, path: str, type_: str) -> str:
    return f"json: cannot unmarshal {value} into Go struct field {owner}.{path} of type {type_}"


def _fits(value: int, node: Json) -> bool:
    limit = 2**31 if node.get("format") == "int32" else 2**63
    return -limit <= value < limit


def _quantity_error(value: Any, owner: str, path: str) -> str:  # noqa: ARG001
    """A number, or a text like `1Gi`."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not is_quantity(str(value)):
        return f"quantities must match the regular expression '{QUANTITY.pattern}'"
    return ""


def _int_or_string_error(value: Any, owner: str, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return _cannot_unmarshal(_go_value(value), owner, path, "int32")
    return ""


_UNIONS = {"Quantity": _quantity_error, "IntOrString": _int_or_string_error}
"""Definitions of values with several possible JSON types."""


def _not_base64(text: str) -> int | None:
    """The position at which a text stops being base64; None if it is valid."""
    text = text.replace("\r", "").replace("\n", "")
    good = _BASE64.match(text)
    end = good.end() if good else 0
    return None if end == len(text) and end % 4 == 0 else end


_SCALARS = (str, int, float)
"""The values of most fields; Python's booleans are among them."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def _has_type(value: Any, type_: str) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    return isinstance(value, _PYTHON_TYPES[type_])


def _go_value(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case float():
            return f"number {value}"
        case int():
            return "number"
        case list():
            return "array"
    return "object"


def _go_type(node: Json) -> str:
    match node["type"]:
        case "integer":
            return str(node.get("format", "int64"))
        case "boolean":
            return "bool"
        case "number":
            return "float64"
        case "array":
            return f"[]{_go_element(node.get('items') or {})}"
        case "object" if node.get("additionalProperties"):
            return f"map[string]{_go_element(node['additionalProperties'])}"
    return str(node["type"])


def _go_element(node: Json) -> str:
    if "$ref" in node:
        return "v1." + str(node["$ref"].rpartition(".")[2])
    return _go_type(node) if "type" in node else "interface {}"


@cache
def _names() -> Mapping[tuple[str, str, str], str]:
    names = {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, definition in definitions().items()
        for kind in definition.get(_KIND, ())
    }
    # DeleteOptions belongs to every group, so its definition names none
    return names | {("meta.k8s.io", "v1", "DeleteOptions"): "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"}
