"""Structural schemas of custom resources: pruning, defaulting, and validation in the words of Kubernetes.

CEL rules (x-kubernetes-validations) are not evaluated.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from kube.objects import Json
from sandbox.apiserver import schemas
from sandbox.apiserver.refusals import FieldError, duplicate, invalid_value, required, type_invalid, unsupported

_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_JSON_TYPES: Mapping[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_TYPE_META = ("apiVersion", "kind", "metadata")


def prune(tree: Json, schema: Json) -> list[str]:
    """Drop the unknown fields of a custom resource in place; return their paths, sorted."""
    unknown: list[str] = []
    for name in [name for name in tree if name not in _TYPE_META]:
        property_ = schemas.property_of(schema, name)
        if property_ is not None:
            tree[name] = _pruned(tree[name], property_, name, unknown)
        elif not schema.get(schemas.PRESERVE):
            unknown.append(name)
            del tree[name]
    tree["metadata"] = schemas.prune(tree["metadata"], schemas.object_meta(), "metadata", unknown)
    return sorted(unknown)


def apply_defaults(value: Any, schema: Json) -> None:
    """Fill in the defaults of a value in place. A null where a default exists counts as absent."""
    if isinstance(value, list):
        for item in value:
            apply_defaults(item, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    for name, property_ in (schema.get("properties") or {}).items():
        if "default" not in property_:
            continue
        if name not in value or (value[name] is None and not property_.get("nullable")):
            value[name] = msgspec.json.decode(msgspec.json.encode(property_["default"]))
    for name, inner in value.items():
        apply_defaults(inner, schemas.property_of(schema, name) or {})


def errors(tree: Json, schema: Json) -> list[FieldError]:
    """All errors that the schema finds in a custom resource."""
    body = {name: value for name, value in tree.items() if name not in _TYPE_META}
    return [*_required(body | dict.fromkeys(_TYPE_META, ""), schema, ""), *_fields(body, schema, "")]


def _pruned(value: Any, schema: Json, path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {schemas.PRESERVE: True}
        return [_pruned(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, inner in value.items():
        place = f"{path}.{name}"
        property_ = schemas.property_of(schema, name)
        if property_ is not None:
            kept[name] = _pruned(inner, property_, place, unknown)
        elif schema.get(schemas.PRESERVE) or (schema.get(_EMBEDDED) and name in _TYPE_META):
            kept[name] = inner
        else:
            unknown.append(place)
    return kept


def _value_errors(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    if wrong := _type_error(value, schema, path):
        yield wrong
        return
    if "enum" in schema and value not in schema["enum"]:
        yield unsupported(path, value, schema["enum"])
    match value:
        case str():
            yield from _string_errors(value, schema, path)
        case bool():
            pass
        case int() | float():
            yield from _number_errors(value, schema, path)
        case list():
            yield from _list_errors(value, schema, path)
        case dict():
            yield from _object_errors(value, schema, path)
    yield from _junctor_errors(value, schema, path)


def _type_error(value: Any, schema: Json, path: str) -> FieldError | None:
    found = _json_type(value)
    if schema.get(_INT_OR_STRING):
        return None if found in ("integer", "string") else type_invalid(path, found, "integer,string")
    expected = schema.get("type")
    if expected is None or found == expected or (expected == "number" and found == "integer"):
        return None
    return type_invalid(path, found, expected)


def _json_type(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return _JSON_TYPES[type(value)]


def _string_errors(value: str, schema: Json, path: str) -> Iterator[FieldError]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength", 0)
    if longest is not None and len(value) > longest:
        yield FieldError("FieldValueTooLong", path, f"Too long: may not be more than {longest} bytes")
    if len(value) < shortest:
        yield invalid_value(path, value, f"{path} in body should be at least {shortest} chars long")
    pattern = schema.get("pattern")
    if pattern and not _compiled(pattern).search(value):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")
    if schema.get("format") == "date-time" and not _is_time(value):
        yield invalid_value(path, value, f'{path} in body must be of type date-time: "{value}"')


def _number_errors(value: float, schema: Json, path: str) -> Iterator[FieldError]:
    low, high, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None and schema.get("exclusiveMinimum") and value <= low:
        yield invalid_value(path, value, f"{path} in body should be greater than {low}")
    elif low is not None and value < low:
        yield invalid_value(path, value, f"{path} in body should be greater than or equal to {low}")
    if high is not None and schema.get("exclusiveMaximum") and value >= high:
        yield invalid_value(path, value, f"{path} in body should be less than {high}")
    elif high is not None and value > high:
        yield invalid_value(path, value, f"{path} in body should be less than or equal to {high}")
    if factor and value % factor:
        yield invalid_value(path, value, f"{path} in body should be a multiple of {factor}")


def _list_errors(value: list[Any], schema: Json, path: str) -> Iterator[FieldError]:
    for index, item in enumerate(value):
        yield from _value_errors(item, schema.get("items") or {}, f"{path}[{index}]")
    most, least = schema.get("maxItems"), schema.get("minItems", 0)
    if most is not None and len(value) > most:
        yield FieldError("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if len(value) < least:
        yield invalid_value(path, len(value), f"{path} in body should have at least {least} items")
    yield from _duplicates(value, schema, path)


def _duplicates(value: list[Any], schema: Json, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("map", "set"):
        return
    seen: list[Any] = []
    for index, item in enumerate(value):
        identity = {key: item[key] for key in keys if key in item} if kind == "map" and isinstance(item, dict) else item
        if identity in seen:
            yield duplicate(f"{path}[{index}]", identity)
        seen.append(identity)


def _object_errors(value: Json, schema: Json, path: str) -> Iterator[FieldError]:
    yield from _required(value, schema, f"{path}.")
    yield from _fields(value, schema, f"{path}.")
    most, least = schema.get("maxProperties"), schema.get("minProperties", 0)
    if most is not None and len(value) > most:
        yield FieldError("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if len(value) < least:
        yield invalid_value(path, len(value), f"{path} in body should have at least {least} properties")


def _required(value: Json, schema: Json, prefix: str) -> Iterator[FieldError]:
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{prefix}{name}")


def _fields(value: Json, schema: Json, prefix: str) -> Iterator[FieldError]:
    for name in sorted(value):
        if property_ := schemas.property_of(schema, name):
            yield from _value_errors(value[name], property_, f"{prefix}{name}")


def _junctor_errors(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    for part in schema.get("allOf") or ():
        yield from _value_errors(value, part, path)
    if (choices := schema.get("anyOf")) and not _valid(value, choices, path):
        yield invalid_value(path, "", f'"{path}" must validate at least one schema (anyOf)')
    if choices := schema.get("oneOf"):
        count = _valid(value, choices, path)
        if count != 1:
            found = "Found none valid" if not count else f"Found {count} valid alternatives"
            yield invalid_value(path, "", f'"{path}" must validate one and only one schema (oneOf). {found}')
    if (unwanted := schema.get("not")) and _valid(value, [unwanted], path):
        yield invalid_value(path, "", f'"{path}" must not validate the schema (not)')


def _valid(value: Any, choices: Iterable[Json], path: str) -> int:
    """The number of schemas that accept the value."""
    return sum(not any(True for _ in _value_errors(value, choice, path)) for choice in choices)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value
