"""OpenAPI v3, as far as kubectl reads it: the schemas of the kinds, and the parameters of their writes.

kubectl leaves validation to the server if a kind's patch has the parameter `fieldValidation`. It reads merge keys for
strategic merge patches, and fields for `kubectl explain`.
"""

from collections.abc import Iterable

from kube.objects import Json
from kube.resources import Resource
from sandbox.apiserver import schemas
from sandbox.apiserver.kinds import Kind

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PREFIX = "#/components/schemas/"
_INFO = {"title": "Kubernetes", "version": "v1.36.3"}
_WRITE_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_REF = "$ref"


def document(kinds: Iterable[Kind], path: str) -> Json | None:
    """The index for an empty path, else the document of `api/v1` or `apis/group/version`; None if it is not served."""
    groups: dict[str, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault(kind.resource.root.strip("/"), []).append(kind)
    if not path:
        return {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}"} for name in sorted(groups)}}
    return version_document(groups[path]) if path in groups else None


def version_document(kinds: list[Kind]) -> Json:
    """The document of the kinds of one version of a group."""
    components: dict[str, Json] = {}
    for kind in kinds:
        _add_kind(components, kind)
    paths = {path: item for kind in kinds for path, item in _paths(kind).items()}
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": components}}


def _paths(kind: Kind) -> dict[str, Json]:
    resource = kind.resource
    namespace = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.root}{namespace}/{resource.plural}"
    return {
        collection: {"get": _operation(kind, "list"), "post": _operation(kind, "post")},
        f"{collection}/{{name}}": {method: _operation(kind, method) for method in ("get", "put", "patch", "delete")},
    }


def _operation(kind: Kind, action: str) -> Json:
    resource = kind.resource
    operation: Json = {
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _group_version_kind(resource),
    }
    if action in ("post", "put", "patch"):
        operation["parameters"] = _WRITE_PARAMETERS
    return operation


def _group_version_kind(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _add_kind(components: dict[str, Json], kind: Kind) -> None:
    if kind.custom is None:
        _add_definition(components, schemas.name_of(kind.resource))
        return
    _add_definition(components, _META)
    resource = kind.resource
    reverse = ".".join(reversed(resource.group.split(".")))
    schema = dict(kind.custom.schema)
    properties = dict(schema.get("properties") or {})
    properties |= _TYPE_META | {
        "metadata": {"allOf": [_reference(_META)], "description": "Standard object's metadata."}
    }
    schema |= {"properties": properties, "x-kubernetes-group-version-kind": [_group_version_kind(resource)]}
    components[f"{reverse}.{resource.version}.{resource.kind}"] = schema


_TYPE_META = {
    "apiVersion": {"type": "string", "description": "The group and version of the schema of this object."},
    "kind": {"type": "string", "description": "The kind of this object."},
}


def _add_definition(components: dict[str, Json], name: str) -> None:
    if name in components:
        return
    components[name] = {}
    components[name] = _published(schemas.definitions()[name], components)


def _published(node: Json, components: dict[str, Json]) -> Json:
    """A node of the definitions in OpenAPI's form; adds what it refers to to the components."""
    published = {key: value for key, value in node.items() if key != _REF}
    if _REF in node:
        _add_definition(components, node[_REF])
        # a reference beside other keywords belongs into allOf
        published |= {"allOf": [_reference(node[_REF])]} if published else _reference(node[_REF])
    if "properties" in node:
        published["properties"] = {name: _published(inner, components) for name, inner in node["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            published[key] = _published(node[key], components)
    return published


def _reference(name: str) -> Json:
    return {_REF: f"{_PREFIX}{name}"}
