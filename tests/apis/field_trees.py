"""Reads the field trees of v1.6's resources (legend: shared-types.fields) and builds the schema they describe."""

import re
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
Schema = dict[str, Any]

_LINE = re.compile(
    r"(?P<path>\S+): (?P<inline>inline )?(?P<wrap>\[\]|map\[\w+\]|)"
    r"(?P<base>-> \w+|k8s \S+ \w+|\S+)(?: (?P<flags>.*))?"
)
_TYPES = {"string": "string", "boolean": "boolean", "integer": "integer", "number": "number", "duration": "string"}
_OPAQUE: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}
_WORDS: dict[str, Schema] = {
    "object": {"type": "object"},
    "empty-object": {"type": "object", **_OPAQUE},
    "quantity": _QUANTITY,
    "time": {"type": "string", "format": "date-time"},
}
_RESOURCES: Schema = {
    "properties": {
        "claims": {"type": "array", "items": {"type": "object", **_OPAQUE}},
        "limits": {"type": "object", "additionalProperties": _QUANTITY},
        "requests": {"type": "object", "additionalProperties": _QUANTITY},
    }
}
_JOB_STATUS: Schema = {
    "properties": {
        "conditions": {"type": "array", "items": {"type": "object", **_OPAQUE}},
        "startTime": {"type": "string", "format": "date-time"},
        "completionTime": {"type": "string", "format": "date-time"},
        **{
            name: {"type": "integer", "format": "int32"}
            for name in ("active", "ready", "succeeded", "failed", "terminating")
        },
        "completedIndexes": {"type": "string"},
        "failedIndexes": {"type": "string"},
        "uncountedTerminatedPods": {"type": "object", **_OPAQUE},
    }
}
_INLINE = {"ResourceRequirements": _RESOURCES, "JobStatus": _JOB_STATUS}
"""The parts inlined from Kubernetes' own types."""


def shared_file(*parts: str) -> Path:
    """A file of the specification; skips the test if it is missing."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the specification is not beside the repository: no {'/'.join(parts)}")
    return path


def tree_schema(kind: str) -> Schema:
    """The OpenAPI schema that a kind's field tree describes, of `spec` and `status`."""
    sections = re.split(r"^## (\w+) .*$", _text("shared-types.fields"), flags=re.MULTILINE)
    shared = dict(zip(sections[1::2], sections[2::2], strict=True))
    return _Tree(shared).schema(_text(f"{kind}.fields"))


def _text(name: str) -> str:
    return shared_file("spec", "api", name).read_text(encoding="utf-8")


class _Tree:
    def __init__(self, shared: dict[str, str]) -> None:
        self._shared = shared

    def schema(self, text: str) -> Schema:
        root: Schema = {"type": "object", "properties": {}}
        for line in text.splitlines():
            if line.startswith("## "):
                break
            if line and not line.startswith("#"):
                found = _LINE.fullmatch(line.partition("  #")[0])
                assert found, f"not a line of a field tree: {line}"
                self._add(root, found)
        return root

    def _add(self, root: Schema, line: re.Match[str]) -> None:
        path, flags = line["path"], (line["flags"] or "").split()
        if line["inline"]:
            node = root if path == "(self)" else _node(root, path)
            inlined = _INLINE.get(line["base"].rpartition(" ")[2]) or self._type(line["base"])
            node.setdefault("properties", {}).update(inlined["properties"])
            _require(node, *inlined.get("required", []))
            return
        above, _, name = path.rpartition(".")
        parent = _node(root, above)
        base = self._type(line["base"]) | _flagged(flags)
        parent.setdefault("properties", {})[name] = _wrapped(base, line["wrap"], flags)
        if "req" in flags:
            _require(parent, name)

    def _type(self, base: str) -> Schema:
        if base.startswith("-> "):
            return self.schema(self._shared[base.removeprefix("-> ")])
        if base.startswith("k8s "):
            return {"type": "object", **_OPAQUE}
        if base.startswith("config<"):
            return dict(_OPAQUE)
        if base in _WORDS:
            return dict(_WORDS[base])
        name, _, width = base.removesuffix("(unsigned)").partition("<")[0].partition("/")
        return {"type": _TYPES[name], **({"format": width} if width else {})}


def _node(root: Schema, path: str) -> Schema:
    for name, suffix in re.findall(r"(\w+)(\[\]|\{\}|)", path):
        root = root["properties"][name]
        if suffix:
            root = root["items" if suffix == "[]" else "additionalProperties"]
    return root


def _require(node: Schema, *names: str) -> None:
    if names:
        node["required"] = sorted({*node.get("required", []), *names})


def _flagged(flags: list[str]) -> Schema:
    """The effect of the flags on a scalar."""
    result: Schema = {}
    for flag in flags:
        key, _, text = flag.partition("=")
        match key:
            case "default":
                result["default"] = {"false": False}.get(text, int(text) if text.isdigit() else text)
            case "min":
                result["minimum"] = int(text)
            case "max":
                result["maximum"] = int(text)
            case "enum":
                result["enum"] = sorted(text.replace('""', "").split("|"))
    return result


def _wrapped(base: Schema, wrap: str, flags: list[str]) -> Schema:
    schema = base
    if wrap == "[]":
        schema = {"type": "array", "items": base}
    elif wrap:
        schema = {"type": "object", "additionalProperties": base}
    if "nullable" in flags:
        schema["nullable"] = True
    if "list-type=map(topologyKey)" in flags:
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["topologyKey"]}
    return schema
