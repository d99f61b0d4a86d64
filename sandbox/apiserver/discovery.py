"""Discovery: versions, health, and the list of served resources."""

from collections.abc import Iterable, Mapping

import msgspec

from kube.objects import Json
from ports.transport import Request, Response
from sandbox.apiserver import negotiation, openapi, openapi_v2
from sandbox.apiserver.answers import bytes_answer, json_answer, text_answer
from sandbox.apiserver.kinds import VERBS, Kind
from sandbox.apiserver.refusals import method_not_allowed, no_such_resource
from sandbox.apiserver.registry import Registry

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "sandbox",
}
"""The emulated version of Kubernetes."""

_HEALTH = ("healthz", "readyz", "livez")
_AGGREGATED = "APIGroupDiscoveryList"
_AGGREGATED_TYPE = f"application/json;g=apidiscovery.k8s.io;v=v2;as={_AGGREGATED}"
_SCALE = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
_OBJECT_VERBS = ("get", "patch", "update")


def answer(registry: Registry, path: str, request: Request) -> Response:
    """The answer for a path that is not a served resource. Raises Refusal (404, 405); unknown paths are 404 as text."""
    parts = path.strip("/").split("/")
    if parts == ["openapi", "v2"] and request.method in ("GET", "HEAD"):
        return _openapi_v2(registry, request.headers.get("accept", ""))
    tree = _document(registry, parts, request.headers.get("accept", ""))
    if tree is not None or parts[0] in _HEALTH:
        if tree is not None and parts[0] in ("api", "apis"):
            _require_acceptable(request.headers.get("accept", ""))
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return text_answer(200, "ok") if tree is None else _typed(tree)
    if _is_served_group(registry, parts):
        raise no_such_resource()
    return text_answer(404, "404 page not found\n")


def _openapi_v2(registry: Registry, accept: str) -> Response:
    tree = openapi_v2.document(registry.kinds.values())
    if any(each in accept for each in openapi_v2.PROTOBUF_TYPES):
        return bytes_answer(openapi_v2.encoded(tree), content_type=openapi_v2.PROTOBUF)
    return json_answer(tree)


def _require_acceptable(accept: str) -> None:
    """Raises Refusal (406) for a client that accepts neither plain nor aggregated discovery."""
    if not negotiation.accepts_as(accept, _AGGREGATED):
        negotiation.form(accept)


def _typed(tree: Json) -> Response:
    """The answer with a content type by which clients distinguish aggregated from plain discovery."""
    if tree.keys() == {"paths"} and "/api" not in tree["paths"]:
        # the index of OpenAPI v3 is JSON that Kubernetes calls text
        return bytes_answer(msgspec.json.encode(tree), content_type="text/plain; charset=utf-8")
    if tree.get("kind") != _AGGREGATED:
        return json_answer(tree)
    return bytes_answer(msgspec.json.encode(tree), content_type=_AGGREGATED_TYPE)


def _document(registry: Registry, parts: list[str], accept: str) -> Json | None:
    kinds = list(registry.kinds.values())
    match parts:
        case ["openapi", "v3", *rest]:
            return openapi.document(kinds, "/".join(rest))
        case ["api" | "apis"] if negotiation.accepts_as(accept, _AGGREGATED) == "v2":
            return _aggregated(kinds, core=parts == ["api"])
        case ["api", version]:
            return _resource_list(_of_version(kinds, "", version))
        case ["apis", group, version]:
            return _resource_list(_of_version(kinds, group, version))
    return _overview(kinds, parts)


def _overview(kinds: list[Kind], parts: list[str]) -> Json | None:
    """The documents that link to further documents."""
    match parts:
        case [""]:
            return {
                "paths": [
                    "/api",
                    "/api/v1",
                    "/apis",
                    *(f"/{name}" for name in _HEALTH),
                    "/openapi/v2",
                    "/openapi/v3",
                    "/version",
                ]
            }
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(kinds, name) for name in _group_names(kinds) if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in _group_names(kinds):
            return _group(kinds, group) | {"kind": "APIGroup", "apiVersion": "v1"}
    return None


def _is_served_group(registry: Registry, parts: list[str]) -> bool:
    """True if the path is under a built-in group; other groups are unknown to the server as a whole."""
    match parts:
        case ["api", _, *_]:
            return True
        case ["apis", group, _, *_]:
            return any(key[0] == group and not kind.custom for key, kind in registry.kinds.items())
    return False


def _group_names(kinds: Iterable[Kind]) -> list[str]:
    return sorted({kind.resource.group for kind in kinds})


def _versions(kinds: Iterable[Kind], group: str) -> list[str]:
    return sorted({kind.resource.version for kind in kinds if kind.resource.group == group}, key=_version_rank)


def _version_rank(version: str) -> tuple[int, str]:
    """Stable versions first, then beta, then alpha."""
    return ("beta" in version) + 2 * ("alpha" in version), version


def _of_version(kinds: Iterable[Kind], group: str, version: str) -> list[Kind]:
    return [kind for kind in kinds if (kind.resource.group, kind.resource.version) == (group, version)]


def _group(kinds: list[Kind], name: str) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(kinds, name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(kinds: list[Kind]) -> Json | None:
    if not kinds:
        return None
    resources = [entry for kind in sorted(kinds, key=lambda kind: kind.resource.plural) for entry in _entries(kind)]
    version = kinds[0].resource.api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _entries(kind: Kind) -> Iterable[Json]:
    resource = kind.resource
    entry: Json = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(VERBS),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    yield entry
    for name in kind.subresources:
        response, verbs = _subresource(kind, name)
        yield {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **response,
            "verbs": list(verbs),
        }


_VERBS_IN_CONTAINERS: Mapping[str, tuple[str, ...]] = {
    "attach": ("create", "get"),
    "exec": ("create", "get"),
    "portforward": ("create", "get"),
    "proxy": ("create", "delete", "get", "patch", "update"),
}


def _subresource(kind: Kind, name: str) -> tuple[Json, tuple[str, ...]]:
    """The kind of a subresource's objects, and its verbs."""
    if name == "scale":
        return _SCALE, _OBJECT_VERBS
    extra = kind.extra_subresources.get(name)
    if name == "log":
        return {"kind": kind.resource.kind}, ("get",)
    if extra is None or extra == kind.resource:
        return {"kind": kind.resource.kind}, _OBJECT_VERBS if extra is None else ("update",)
    return {"group": extra.group, "version": extra.version, "kind": extra.kind}, _VERBS_IN_CONTAINERS.get(
        name, ("create",)
    )


def _aggregated(kinds: list[Kind], *, core: bool) -> Json:
    """The same lists in one document (apidiscovery.k8s.io/v2)."""
    names = [name for name in _group_names(kinds) if (not name) is core]
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(kind) for kind in _of_version(kinds, name, version)],
                    "freshness": "Current",
                }
                for version in _versions(kinds, name)
            ],
        }
        for name in names
    ]
    version = "apidiscovery.k8s.io/v2"
    return {"kind": _AGGREGATED, "apiVersion": version, "metadata": {}, "items": items}


def _aggregated_resource(kind: Kind) -> Json:
    resource = kind.resource
    entry: Json = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(VERBS),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(kind, name) for name in kind.subresources]
    return entry


def _aggregated_subresource(kind: Kind, name: str) -> Json:
    response, verbs = _subresource(kind, name)
    own = {"group": kind.resource.group, "version": kind.resource.version}
    return {"subresource": name, "responseKind": own | response, "verbs": list(verbs)}
