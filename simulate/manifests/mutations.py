"""Malformed manifests: a seed determines a file, made from a sample by one to three mistakes.

Most mistakes are values: a field of the sample or the CRD gets a value that does not fit, is renamed or omitted. Others
are bytes: cut, repeated, swapped, in another encoding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import yaml

import manifests
from apis.crd import TIDB_CLUSTER, definition
from kube.objects import Json
from ports.randomness import Randomness, SeededRandomness
from simulate.families.draws import pick

_SAMPLES = ("basic", "basic", "basic", "advanced")

_VALUES: Sequence[Any] = (
    *(None, True, False, 0, 1, -1, 2, 1 << 31, -(1 << 31), (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1),
    *(0.5, -0.0, 1e308, 5e-324),
    *("", " ", "\n", "a b", "-", ".", "..", "../x", "/", "/x", "a/b", "a.b", "A", "a" * 64, "x" * 300, "x" * 70000),
    *("é", "日本", "😀", "\u202e", "\x07", "\x7f", "{{", "$(X)", "${X}", "`id`", "'", '"', "#", "%s", "{}", "[]"),
    *("true", "null", "0", "-1", "1.5", "1e3", "NaN", "0x10", "1_000", "9" * 5000),
    *("1Gi", "-5Gi", "0Gi", "8Ei", "1e99999999", "1e-99999999", "1Xi", "Gi", ".5Gi", "1m"),
    *("10s", "-10s", "1h30", "9999999h", "v8.5.2", "latest", "v8 .5", "Mars/Base", "UTC", "Always", "RollingUpdate"),
    *(
        "pingcap/pd",
        "pingcap/PD",
        "http://x",
        "http://[",
        "::1",
        "10.0.0.0/8",
        "x=y",
        "[log]",
        "[[[",
        "a = ",
        "a.b = 1\na = 2",
    ),
    *([], {}, [None], [[]], [{}], [1], ["a"], ["a", "a"], {"": ""}, {"a": None}, {"a": {"a": {}}}, {"name": "a"}),
    *([{"name": "a", "image": "busybox:1"}], [{"name": "a", "emptyDir": {}}], [{"name": "a", "mountPath": "/a"}]),
    *([{"name": "A", "value": "b"}], [{"key": "a", "operator": "Exists"}], [{"topologyKey": "a"}], {"fsGroup": 1}),
    *([{"name": "a", "storageSize": "1Gi", "mountPath": "/a"}], {"cpu": "1", "memory": "1Gi"}, {"enabled": True}),
    *([{"name": "a"}, {"name": "a"}], [{"name": 1}], {"storage": {}}, {"storage": "-1"}, {"a b": "c"}, "[" * 3000),
)

_Path = tuple[str | int, ...]


def mutated(seed: int) -> bytes:
    """The file of a seed."""
    draw = SeededRandomness(seed)
    tree: Json = yaml.safe_load((manifests.DIRECTORY / "samples" / f"{pick(draw, _SAMPLES)}.yaml").read_bytes())
    for _ in range(pick(draw, (1, 1, 1, 2, 3))):
        pick(draw, _OF_TREES)(draw, tree)
    content = _written(draw, tree)
    return content if draw.integer(0, 5) else pick(draw, _OF_BYTES)(draw, content)


def _written(draw: Randomness, tree: Json) -> bytes:
    if draw.integer(0, 9):
        return yaml.safe_dump(tree, sort_keys=False, allow_unicode=bool(draw.integer(0, 1))).encode()
    return msgspec.json.encode(tree, order=None)


def _paths(tree: object, path: _Path = ()) -> Iterator[_Path]:
    """Every place in a tree except its root."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _place(draw: Randomness, tree: Json) -> tuple[Any, Any]:
    """A random place, as its container and key; the root's first one if nothing is left."""
    path = pick(draw, list(_paths(tree)) or [("spec",)])
    holder: Any = tree
    for key in path[:-1]:
        holder = holder[key]
    return holder, path[-1]


def _replace(draw: Randomness, tree: Json) -> None:
    holder, key = _place(draw, tree)
    holder[key] = _value(draw)


def _value(draw: Randomness) -> Any:
    return _copy(pick(draw, _VALUES))


def _copy(value: Any) -> Any:
    """An independent copy of a value."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _remove(draw: Randomness, tree: Json) -> None:
    holder, key = _place(draw, tree)
    if isinstance(holder, list) or key in holder:
        del holder[key]


def _rename(draw: Randomness, tree: Json) -> None:
    holder, key = _place(draw, tree)
    if isinstance(holder, dict) and key in holder:
        value = holder.pop(key)
        at = draw.integer(0, len(key))
        holder[key[:at] + pick(draw, ("", "s", "-", ".", " ", "X")) + key[at + 1 :]] = value


def _move(draw: Randomness, tree: Json) -> None:
    """Move a subtree to a place where it does not fit."""
    source, key = _place(draw, tree)
    copy = _copy(source[key] if isinstance(source, list) else source.get(key))
    holder, other = _place(draw, tree)
    holder[other] = copy


def _set_field(draw: Randomness, tree: Json) -> None:
    """Set a CRD field, mostly of a present component, to a value that mostly has its type."""
    fields = [(path, type_) for path, type_ in _fields() if path[0] != "spec" or _is_there(tree, path)]
    path, type_ = pick(draw, fields if draw.integer(0, 9) else _fields())
    holder: Any = tree
    for key in path[:-1]:
        below = holder.get(key)
        if not isinstance(below, dict):
            below = holder[key] = {}
        holder = below
    fitting = [value for value in _VALUES if isinstance(value, type_)]
    holder[path[-1]] = _copy(pick(draw, fitting)) if fitting and draw.integer(0, 9) else _value(draw)


def _is_there(tree: Json, path: tuple[str, ...]) -> bool:
    """True if a field belongs to the cluster itself, or to a part that the manifest has."""
    spec = tree.get("spec")
    return len(path) < 3 or (isinstance(spec, dict) and path[1] in spec)


_Field = tuple[tuple[str, ...], type]


@cache
def _fields() -> Sequence[_Field]:
    """Every field of a TidbCluster's spec and metadata outside lists, and its type."""
    version = definition(TIDB_CLUSTER, status_subresource=True)["spec"]["versions"][0]
    found = list(_of_schema(version["schema"]["openAPIV3Schema"]["properties"]["spec"], ("spec",)))
    texts = ("name", "namespace", "resourceVersion", "uid", "generateName")
    found += [(("metadata", name), str) for name in texts]
    found += [(("metadata", name), dict) for name in ("labels", "annotations")]
    return [*found, (("metadata", "finalizers"), list), (("status",), dict), (("kind",), str), (("apiVersion",), str)]


def _of_schema(node: Json, path: tuple[str, ...]) -> Iterator[_Field]:
    yield path, _TYPES.get(node.get("type", ""), object)
    for name, inner in (node.get("properties") or {}).items():
        yield from _of_schema(inner, (*path, name))


_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


_OF_TREES: Sequence[Callable[[Randomness, Json], None]] = (
    *(_replace, *[_set_field] * 6),
    *(_remove, _rename, _move),
)


def _cut(draw: Randomness, content: bytes) -> bytes:
    begin, end = sorted(draw.integer(0, len(content)) for _ in range(2))
    return content[:begin] + content[end:]


def _end(draw: Randomness, content: bytes) -> bytes:
    return content[: draw.integer(0, len(content))]


def _swap(draw: Randomness, content: bytes) -> bytes:
    at = draw.integer(0, max(len(content) - 1, 0))
    return content[:at] + bytes([draw.integer(0, 255)]) + content[at + 1 :]


def _insert(draw: Randomness, content: bytes) -> bytes:
    at = draw.integer(0, len(content))
    return content[:at] + pick(draw, _BYTES) + content[at:]


def _repeat_line(draw: Randomness, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at = draw.integer(0, len(lines) - 1)
    return b"".join([*lines[:at], lines[at], *lines[at:]])


def _indent_line(draw: Randomness, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    at = draw.integer(0, len(lines) - 1)
    return b"".join([*lines[:at], pick(draw, (b" ", b"  ", b"\t")) + lines[at], *lines[at + 1 :]])


def _encode(draw: Randomness, content: bytes) -> bytes:
    encoding = pick(draw, ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037"))
    return content.decode("utf-8", "replace").encode(encoding, "replace")


_BYTES = (
    *(b"\0", b"\xff", b"\xfe\xff", b"\x1b[2J", b"\t", b"\n---\n", b"\n...\n", b"*a", b"&a ", b"!!binary ", b"!x "),
    *(
        b'"\\ud800"',
        b"[" * 500,
        b"{" * 500,
        b": ",
        b"- ",
        b"? ",
        b"|",
        b">",
        b"'",
        b'"',
        b"<<: ",
        b"%YAML 3\n",
        b"\xe2\x80",
    ),
)

_OF_BYTES: Sequence[Callable[[Randomness, bytes], bytes]] = (
    *(_cut, _end, _swap, _insert, _insert, _repeat_line, _indent_line, _encode),
)
