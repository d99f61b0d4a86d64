"""Tables, the answers to `kubectl get` (application/json;as=Table)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from kube.objects import Json
from sandbox.apiserver import json_path
from sandbox.apiserver.ages import age
from sandbox.apiserver.kinds import Column, Custom, Kind
from sandbox.apiserver.printing import printer_of
from sandbox.apiserver.storage import Stored

_NAME = "Name must be unique within a namespace."
_SCALARS = {"integer": (int,), "number": (int, float), "boolean": (bool,)}
_AGE = Column("Age", "date", ".metadata.creationTimestamp")


def table(kind: Kind, items: Iterable[Stored], now: datetime, meta: Json, include: str, *, header: bool = True) -> Json:
    """A Table of objects. `include` is the part of the object in each row: Metadata (or empty), Object, None."""
    body: Json = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    body["columnDefinitions"] = _definitions(kind) if header else None
    body["rows"] = [_row(kind, stored.tree(), now, include) for stored in items]
    return body


def _definitions(kind: Kind) -> list[Json]:
    name = _definition("Name", "string", 0, _NAME, "name")
    if kind.custom:
        return [name, *(_custom_definition(column) for column in _columns(kind.custom))]
    printer = printer_of(kind.key)
    rest = [_definition(column, type_, priority) for column, type_, priority in printer.columns]
    return [*rest, name | {"priority": 1}] if printer.name_last else [name, *rest]


def _definition(name: str, type_: str, priority: int, description: str = "", format_: str = "") -> Json:
    return {"name": name, "type": type_, "format": format_, "description": description, "priority": priority}


def _custom_definition(column: Column) -> Json:
    description = column.description or f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return _definition(column.name, column.type, column.priority, description, column.format)


def _columns(custom: Custom) -> tuple[Column, ...]:
    return custom.columns or (_AGE,)


def _row(kind: Kind, tree: Json, now: datetime, include: str) -> Json:
    row: Json = {"cells": _cells(kind, tree, now)}
    if include == "Object":
        row["object"] = tree | {"apiVersion": kind.resource.api_version}
    elif include != "None":
        meta = tree["metadata"]
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    return row


def _cells(kind: Kind, tree: Json, now: datetime) -> list[Any]:
    if not kind.custom:
        return printer_of(kind.key).cells(tree, now)
    return [tree["metadata"]["name"], *(_cell(column, tree, now) for column in _columns(kind.custom))]


def _cell(column: Column, tree: Json, now: datetime) -> Any:
    found = json_path.find(column.json_path, tree)
    if not found:
        return None
    value = found[0]
    match column.type:
        case "string":
            return _text(found)
        case "date":
            return age(value, now) if isinstance(value, str) else "<unknown>"
    return value if type(value) in _SCALARS.get(column.type, ()) else None


def _text(found: list[Any]) -> str:
    """Join several values as kubectl does: in brackets, separated by blanks."""
    if len(found) > 1:
        return "[" + " ".join(_word(value) for value in found) + "]"
    return _word(found[0])


def _word(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict() | list():
            return msgspec.json.encode(value).decode()
    return str(value)
