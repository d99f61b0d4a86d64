"""Makes `builtin_protobuf.json` from the `generated.proto` files that Kubernetes publishes.

Run `python -m sandbox.apiserver.import_protobuf FILE...` with the files of k8s.io/api (apps, autoscaling, batch,
coordination, core, discovery, networking, policy, rbac, scheduling, storage; all v1) and k8s.io/apimachinery (meta/v1,
runtime, resource, intstr), after `import_schemas`.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from sandbox.apiserver import schemas

Message = Mapping[str, list[str]]
"""The fields of a message by number: name, type, and `repeated` or `map`."""

_OUTPUT = Path(__file__).with_name("builtin_protobuf.json")
_DELETE_OPTIONS = "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TYPE = r"(?:(?P<label>optional|repeated) (?P<type>[\w.]+)|map<string, (?P<value>[\w.]+)>)"
_FIELD = re.compile(rf"^\s*{_TYPE} (?P<name>\w+) = (?P<number>\d+);", re.MULTILINE)
_SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})


def messages(text: str) -> dict[str, Message]:
    """The messages of a file by their full names."""
    package = _PACKAGE.search(text)
    if not package:
        raise ValueError("the file names no package")
    prefix = package[1]
    return {f"{prefix}.{name}": _fields(body, prefix) for name, body in _MESSAGE.findall(text)}


def _fields(body: str, package: str) -> Message:
    fields = {}
    for match in _FIELD.finditer(body):
        shape = ["map"] if match["value"] else ["repeated"] * (match["label"] == "repeated")
        fields[match["number"]] = [match["name"], _full(match["type"] or match["value"], package), *shape]
    return fields


def _full(type_: str, package: str) -> str:
    if type_ in _SCALARS:
        return type_
    return type_[1:] if type_.startswith(".") else f"{package}.{type_}"


def reachable(names: Iterable[str], known: Mapping[str, Message]) -> dict[str, Message]:
    """The named messages and all that they contain."""
    found: dict[str, Message] = {}
    waiting = [name for name in names if name in known]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name]
            waiting += [type_ for _, type_, *_ in known[name].values() if type_ in known]
    return found


def main(paths: Iterable[str]) -> None:
    """Read the files and write the field numbers beside this module, one message per line."""
    known: dict[str, Message] = {}
    for path in paths:
        known |= messages(Path(path).read_text(encoding="utf-8"))
    wanted = [name.replace("io.k8s.", "k8s.io.", 1) for name in schemas.definitions()]
    found = reachable([*wanted, _DELETE_OPTIONS], known)
    lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    _OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
