"""From the bytes of a manifest to JSON trees: the one place that decodes users' files; and YAML for readers.

YAML is read as by kubectl: dates and `1:30` are text, and numeric keys become text. Values that JSON cannot hold, and
obvious mistakes (two values for one key, an alias within its own value), are rejected with their line.
"""

import json
import math
import re
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

_MOST_BYTES = 4 << 20
"""More than the API server accepts for one object (3 MB)."""
_DEEPEST = 100
"""Levels below the document; the deepest field of a TidbCluster is 20 levels down."""
_MOST_NODES = 500_000
"""The maximum number of values with expanded aliases, because a few lines could stand for billions."""
_CHARACTERS = 32
"""The number of characters of a text that count as one value."""
_INTEGERS = range(-(1 << 63), 1 << 64)
"""The range of integers in Kubernetes' decoder."""
_LONGEST_INTEGER = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAME = "<byte string>"
"""PyYAML's name for its input."""
_TAB = r"found character '\t'"
_CORE = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(_CORE + name for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge"))
_LEFT_AS_TEXT = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
"""Numbers to the base of 60, which neither YAML 1.2 nor kubectl knows."""

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)")
_BLANKS = re.compile(r"[ \t\r\n]*")


class BadDocument(Exception):
    """Raised for unusable bytes; the message gives place, problem and way out."""


def read_bytes(path: Path) -> bytes:
    """The content of a file, or of standard input for `-`. Raises BadDocument."""
    try:
        with sys.stdin.buffer if str(path) == "-" else path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadDocument(f"{error.strerror or error}; give the path of a YAML file") from None
    if len(content) > _MOST_BYTES:
        raise BadDocument(
            f"is larger than {_MOST_BYTES >> 20} MiB; give the path of a YAML file with Kubernetes objects"
        )
    return content


def decode_documents(content: bytes) -> Iterator[object]:
    """The documents of a YAML or JSON file as JSON trees, None for empty ones. Raises BadDocument."""
    try:
        yield from yaml.load_all(as_yaml(content), _Loader)
    except yaml.reader.ReaderError as error:
        raise BadDocument(_unreadable(error)) from None
    except yaml.YAMLError as error:
        raise BadDocument(f"not valid YAML: {_problem(error)}") from None
    except (ValueError, OverflowError) as error:  # from escapes, in PyYAML's scanner
        raise BadDocument(f"not valid YAML: {error}") from None


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is not None and _TAB in str(error):
        return f"line {mark.line + 1}, column {mark.column + 1}: a tab, which YAML does not take; indent with spaces"
    return " ".join(str(error).split()).replace(f' in "{_NAME}",', " in")


def _unreadable(error: yaml.reader.ReaderError) -> str:
    character = error.character
    code = character[0] if isinstance(character, bytes) else ord(character) if isinstance(character, str) else character
    what = f"byte 0x{code:02x}" if error.encoding != "unicode" else f"control character U+{code:04X}"
    return f"is no text in UTF-8: {what} at position {error.position}; save it as UTF-8, or give another file"


class _Refused(yaml.YAMLError):
    """Raised for a value that YAML allows but a Kubernetes object cannot have."""

    def __init__(self, problem: str, at: yaml.Node | yaml.Event) -> None:
        mark = at.start_mark
        super().__init__(f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem)


class _Loader(yaml.SafeLoader):
    """Builds only JSON trees."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._open: list[str | None] = []
        self._sizes: dict[int, int] = {}

    def compose_document(self) -> yaml.Node | None:
        self._sizes = {}
        return super().compose_document()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: yaml.NodeEvent = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in self._open:
                raise _Refused(f"the alias *{event.anchor} stands within its own value; write the value out", event)
            return super().compose_node(parent, index)
        if len(self._open) > _DEEPEST:
            raise _Refused(f"is nested more than {_DEEPEST} levels deep; no field of an object is", event)
        self._open.append(event.anchor)
        node = super().compose_node(parent, index)
        self._open.pop()
        if isinstance(node, yaml.MappingNode):
            self._refuse_duplicates(node)
        if node is not None and self._size(node) > _MOST_NODES:
            raise _Refused(f"has more than {_MOST_NODES} values once its aliases are written out", event)
        return node

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and _LEFT_AS_TEXT.fullmatch(value):
            return f"{_CORE}str"
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]

    def _size(self, node: yaml.Node) -> int:
        """The size at and below a node whose children have been measured; long texts count as several."""
        if id(node) not in self._sizes:
            if isinstance(node, yaml.MappingNode):
                inside = sum(self._sizes[id(child)] for pair in node.value for child in pair)
            elif isinstance(node, yaml.CollectionNode):
                inside = sum(self._sizes[id(child)] for child in node.value)
            else:
                inside = len(node.value) // _CHARACTERS
            self._sizes[id(node)] = 1 + inside
        return self._sizes[id(node)]

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node.tag not in _PLAIN_TAGS:
            raise _Refused(f"the tag {node.tag.replace(_CORE, '!!')} has no meaning in an object; remove it", node)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError):
            raise _Refused(f"{node.value!r} is no {node.tag.removeprefix(_CORE)}; remove the tag", node) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: ARG002
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=True) for key, value in node.value}

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            name = "<<" if key.tag == f"{_CORE}merge" else self._key(key)
            if name in seen:
                raise _Refused(f"{name} has a value already, in line {seen[name]}; keep one of the two", key)
            seen[name] = key.start_mark.line + 1

    def _key(self, node: yaml.Node) -> str:
        match self.construct_object(node, deep=True) if isinstance(node, yaml.ScalarNode) else None:
            case str(key):
                return key
            case bool(key):
                return str(key).lower()
            case int(key):
                return str(key)
        raise _Refused("the name of a field must be text; write it in quotes", node)

    def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
        text = self.construct_scalar(node)
        if _SURROGATE.search(text):
            raise _Refused("has half of a UTF-16 pair (\\ud800 to \\udfff), no character; write it whole", node)
        return str(text)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        # the interpreter refuses to parse very long ones
        if len(node.value) <= _LONGEST_INTEGER and (number := int(super().construct_yaml_int(node))) in _INTEGERS:
            return number
        raise _Refused("is a number of more than 64 bits; write it in quotes if it is text", node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        number = float(super().construct_yaml_float(node))
        if not math.isfinite(number):
            raise _Refused("is no finite number; write it in quotes if it is text", node)
        return number


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _PLAIN_TAGS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _kind, _construct in (
    ("str", _Loader.construct_yaml_str),
    ("int", _Loader.construct_yaml_int),
    ("float", _Loader.construct_yaml_float),
):
    _Loader.add_constructor(_CORE + _kind, _construct)


def as_yaml(content: bytes) -> bytes:
    """One or several JSON objects as equivalent YAML with the same lines; any other content unchanged."""
    try:
        text = content.decode("utf-8-sig")
        objects = list(_objects(text)) if text.lstrip().startswith("{") else []
    except (ValueError, RecursionError):
        return content
    # a JSON text contains no unescaped tab
    whole = [_ESCAPE.sub(_surrogate_pair, item.replace("\t", " ")) for item in objects]
    return "".join(whole).encode() if whole else content


def _objects(text: str) -> Iterator[str]:
    """Each object with surrounding blanks, later ones marked as documents. Raises ValueError, RecursionError."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    begin = _blanks(text, 0)
    lead = text[:begin]
    while begin < len(text):
        _, end = decoder.raw_decode(text, begin)
        after = _blanks(text, end)
        yield lead + text[begin:after]
        begin, lead = after, "--- " if text[end:after].endswith("\n") else "\n--- "


def _blanks(text: str, at: int) -> int:
    """The end of a run of blanks."""
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _surrogate_pair(escape: re.Match[str]) -> str:
    """A surrogate pair as one character; other escapes mean the same in YAML."""
    return str(json.loads(f'"{escape[0]}"')) if len(escape[0]) > 2 else escape[0]


class ReadableDumper(yaml.SafeDumper):
    """Writes texts of several lines, such as configurations, as blocks."""


def _as_block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


ReadableDumper.add_representer(str, _as_block)
