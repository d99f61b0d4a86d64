"""Objects with another value in one field, and their outcome without what differs each time."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cli.fields.samples import VALUES
from kube.objects import Json
from member.fields.declared import ITEM

NOTES = ("tidb.pingcap.com/written-for", "pingcap.com/last-applied-configuration")
"""What the operator notes of a spec for itself."""
CHANGING = (
    r'"uid":"[^"]*"|"clusterIPs?":("[^"]*"|\[[^\]]*\])|"nodePort":\d+|\d{4}-\d\d-\d\dT[^"]*|"resourceVersion":"\d+"'
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{7,64}|\b\d{10,}\b"
)


def with_field(spec: Json, path: str, node: Json, values: Mapping[str, object]) -> Json:
    """The spec with another value of a field; `values` are examples by the end of a path."""
    changed: Any = msgspec.json.decode(msgspec.json.encode(spec))
    inner = changed
    *way, last = path.split(".")
    for step in way:
        name = step.removesuffix(ITEM)
        if not inner.get(name):
            inner[name] = [{}] if step.endswith(ITEM) else {}
        inner = inner[name][0] if step.endswith(ITEM) else inner[name]
    inner[last] = _sample(path, node, inner.get(last), values)
    result: Json = changed
    return result


def _sample(path: str, node: Json, there: object, values: Mapping[str, object]) -> object:
    """Another value than the present one."""
    steps = path.split(".")
    for table in (values, VALUES):
        for key in (".".join(steps[first:]) for first in range(len(steps))):
            if key in table and table[key] != there:
                return table[key]
    if "enum" in node:
        return next(each for each in node["enum"] if each not in ("", there))
    if node.get("type") in ("integer", "number"):
        return max(there if isinstance(there, int) else node.get("default", 0), node.get("minimum", 0)) + 1
    by_type = {"boolean": not there, "array": ["sample"], "object": {"sample": "on"}}
    return by_type.get(node.get("type", ""), f"{there or ''}sample")


def as_text(objects: Sequence[Json], conditions: Sequence[Json]) -> str:
    """Objects without their status, and conditions, without what differs each time."""
    kept = [{key: value for key, value in each.items() if key != "status"} for each in objects]
    told = [[each.get(key) for key in ("type", "status", "reason", "message")] for each in conditions]
    for each in kept:
        meta = each["metadata"]
        annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in NOTES}
        each["metadata"] = {"labels": meta.get("labels"), "annotations": annotations}
    return re.sub(CHANGING, "", msgspec.json.encode([kept, told], order="sorted").decode())
