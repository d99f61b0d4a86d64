"""Makes `apis/kubernetes_types.json` from `builtin_schemas.json` and the models of the `kubernetes` package.

The schemas give the types of one release of Kubernetes, the package the names that later releases have added. Run
`python -m sandbox.apiserver.import_types` after either is replaced by a newer one.
"""

import importlib
import re
from collections.abc import Iterator, Mapping

import msgspec

from apis import embedded
from kube.objects import Json
from sandbox.apiserver import schemas

Types = Mapping[str, Mapping[str, str]]
"""The fields of each type by its name, with their types as `apis.embedded` writes them."""

_SCALARS_OF_SCHEMAS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": embedded.QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": embedded.INTEGER_OR_STRING,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "string",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": embedded.ANYTHING,
}
_SCALARS_OF_PACKAGE = {
    "str": "string",
    "int": "integer",
    "bool": "boolean",
    "datetime": "string",
    "object": embedded.ANYTHING,
}


def published_types() -> Types:
    """The embedded types, and all that they contain, as the schemas have them."""
    by_name = {name.rpartition(".")[2]: name for name in schemas.definitions()}
    found: dict[str, Mapping[str, str]] = {}
    waiting = [by_name[name] for name in embedded.ROOTS]
    while waiting:
        full = waiting.pop()
        name, properties = full.rpartition(".")[2], schemas.definitions()[full].get("properties", {})
        if name in found:
            continue
        found[name] = {field: _of_schema(node) for field, node in properties.items()}
        waiting += [inner for node in properties.values() for inner in _references(node)]
    return found


def packaged_fields(name: str) -> Mapping[str, str]:
    """The fields of a type as the models of the package have them; empty where it has no such model."""
    models = importlib.import_module("kubernetes.client.models")
    model = getattr(models, f"V1{name}", None) or getattr(models, name, None)
    if model is None:
        return {}
    return {field: _of_package(model.openapi_types[key]) for key, field in model.attribute_map.items()}


def _references(node: Json) -> Iterator[str]:
    name = node.get("$ref")
    if name and name not in _SCALARS_OF_SCHEMAS:
        yield name
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from _references(node[key])


def _of_schema(node: Json) -> str:
    if name := node.get("$ref"):
        return _SCALARS_OF_SCHEMAS.get(name) or name.rpartition(".")[2]
    if "items" in node:
        return "[]" + _of_schema(node["items"])
    if "additionalProperties" in node:
        return "{}" + _of_schema(node["additionalProperties"])
    return str(node["type"])


def _of_package(text: str) -> str:
    """The type of a field from its Python annotation, such as `list[V1EnvVar]` or `Dict(str, str)`."""
    if match := re.fullmatch(r"(list|dict)[\[(](?:str, )?(.+)[\])]", text, re.IGNORECASE):
        return {"list": "[]", "dict": "{}"}[match[1].lower()] + _of_package(match[2])
    return _SCALARS_OF_PACKAGE.get(text) or text.removeprefix("V1")


def _added(name: str, published: Types) -> dict[str, str]:
    """The fields of a type as the package has them; a value of a type that is newer than the schemas may be any."""
    scalars = {*_SCALARS_OF_SCHEMAS.values(), *_SCALARS_OF_PACKAGE.values()}
    known = published.keys() | scalars
    fields = packaged_fields(name).items()
    return {field: kind if kind.lstrip("[]{}") in known else embedded.ANYTHING for field, kind in fields}


def main() -> None:
    """Write the types, one per line."""
    published = published_types()
    types = {name: dict(sorted({**_added(name, published), **fields}.items())) for name, fields in published.items()}
    lines = (f'"{name}": {msgspec.json.encode(types[name]).decode()}' for name in sorted(types))
    embedded.PUBLISHED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
