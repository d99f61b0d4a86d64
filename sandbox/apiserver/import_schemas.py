"""Makes `builtin_schemas.json` from the OpenAPI v3 documents of a real Kubernetes.

Save each document that is served (`kubectl get --raw /openapi/v3/apis/apps/v1 > apps_v1.json`, and so on for the groups
in `kinds`) into one directory, then run `python -m sandbox.apiserver.import_schemas DIRECTORY`.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kube.objects import Json
from kube.resources import Resource
from sandbox.apiserver.kinds import BUILT_IN

_OUTPUT = Path(__file__).with_name("builtin_schemas.json")
_KIND = "x-kubernetes-group-version-kind"
_KEPT = (
    "type",
    "format",
    "required",
    "oneOf",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)
_SUBRESOURCES = (
    Resource("", "v1", "bindings", "Binding"),
    Resource("policy", "v1", "evictions", "Eviction"),
    Resource("autoscaling", "v1", "scales", "Scale"),
)


def extracted(documents: Iterable[Json], resources: Iterable[Resource]) -> dict[str, Json]:
    """The definitions of the resources and of all they refer to, without descriptions.

    Raises KeyError when a resource is in none of the documents.
    """
    published = {name: node for document in documents for name, node in document["components"]["schemas"].items()}
    by_kind = {_identity(kind): name for name, node in published.items() for kind in _own_kinds(name, node)}
    found: dict[str, Json] = {}
    for resource in resources:
        identity = (resource.group, resource.version, resource.kind)
        _add(by_kind[identity], published, found)
        kind = dict(zip(("group", "version", "kind"), identity, strict=True))
        found[by_kind[identity]][_KIND] = [kind]
    return found


def _own_kinds(name: str, node: Json) -> list[Json]:
    # Options and Status are listed under every group
    kinds: list[Json] = node.get(_KIND, [])
    return [kind for kind in kinds if name.endswith(f".{kind['kind']}") and len(kinds) < 3]


def _identity(kind: Json) -> tuple[str, str, str]:
    return kind["group"], kind["version"], kind["kind"]


def _add(name: str, published: dict[str, Json], found: dict[str, Json]) -> None:
    if name in found:
        return
    found[name] = {}
    node = _slim(published[name])
    found[name] = node
    for inner in _references(node):
        _add(inner, published, found)


def _slim(node: Json) -> Json:
    slim: Json = {key: node[key] for key in _KEPT if key in node}
    for one in (node, *node.get("allOf", ())):
        if "$ref" in one:
            slim["$ref"] = one["$ref"].rpartition("/")[2]
    if "properties" in node:
        slim["properties"] = {name: _slim(inner) for name, inner in node["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in node:
            slim[key] = _slim(node[key])
    return slim


def _references(node: Json) -> Iterator[str]:
    if "$ref" in node:
        yield node["$ref"]
    for inner in node.get("properties", {}).values():
        yield from _references(inner)
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from _references(node[key])


def main(directory: str) -> None:
    """Read the documents of a directory and write the schemas beside this module, one definition per line."""
    documents = [json.loads(path.read_bytes()) for path in sorted(Path(directory).glob("*.json"))]
    resources = [*(kind.resource for kind in BUILT_IN), *_SUBRESOURCES]
    found = extracted(documents, resources)
    lines = (f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found))
    _OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
