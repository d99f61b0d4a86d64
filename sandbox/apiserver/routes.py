"""From the path of a request to its target."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.refusals import bad_request

_VERBS_OF_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_VERBS_OF_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass(frozen=True, slots=True)
class Target:
    """The object, collection or subresource of a request."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> str:
        """The key of the object in storage."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Location:
    """A request's path, split, and its query."""

    path: str
    query: Mapping[str, str]


def locate(url: str) -> Location:
    """Split a path and its query; the first value of a repeated parameter counts."""
    parts = urlsplit(url)
    query = dict(reversed(parse_qsl(parts.query, keep_blank_values=True))) if parts.query else {}
    return Location(parts.path, query)


def number(query: Mapping[str, str], name: str, default: int) -> int:
    """A parameter that is a number. Raises Refusal (400)."""
    text = query.get(name) or str(default)
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'{name}: Invalid value: "{text}": must be an integer') from error


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> str:
    """The API verb; empty if the target does not support the method."""
    if target.name:
        return _VERBS_OF_OBJECT.get(method, "")
    if method != "GET" and target.kind.resource.namespaced and not target.namespace:
        return ""
    verb = _VERBS_OF_COLLECTION.get(method, "")
    if verb == "list" and query.get("watch", "") in ("true", "1"):
        return "watch"
    return verb


def resolve(path: str, kinds: Mapping[tuple[str, str, str], Kind]) -> Target | None:
    """The target of a path, with kinds by (group, version, plural); None if it names no served resource."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    return _target(group, version, rest, kinds)


def _target(group: str, version: str, rest: list[str], kinds: Mapping[tuple[str, str, str], Kind]) -> Target | None:
    namespace = ""
    # `namespaces/x` and `namespaces/x/status` are the namespace itself
    if len(rest) > 2 and rest[0] == "namespaces" and (group or rest[2] not in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        return None
    kind = kinds.get((group, version, rest[0]))
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if kind is None or (subresource and subresource not in kind.subresources and not kind.custom):
        return None
    if bool(namespace) and not kind.resource.namespaced:
        return None
    if kind.resource.namespaced and name and not namespace:
        return None
    return Target(kind, namespace, name, subresource)
