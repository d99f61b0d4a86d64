"""The operator's rights: what manifests/operator does not grant is refused, as the real API server would.

So each plan and each test asks for them as well. What caches list and watch does not pass here; groups that no rule
names are those of somebody's own kinds, whose rights come from elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import yaml

import manifests
from ports.transport import ByteStream, Request, Response, Transport
from sandbox.apiserver.answers import refusal_answer
from sandbox.apiserver.refusals import Refusal
from sandbox.apiserver.routes import locate

_RULES = "operator/rbac-cluster.yaml"
_VERBS: Mapping[str, str] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource, as RBAC names it: `tidbclusters/status`."""

    verb: str
    group: str
    resource: str


@cache
def granted() -> frozenset[Right]:
    """What the rules of the ClusterRole and the Role name."""
    documents = yaml.safe_load_all((manifests.DIRECTORY / _RULES).read_text(encoding="utf-8"))
    return frozenset(
        Right(verb, group, resource)
        for document in documents
        for rule in (document or {}).get("rules", ())
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    )


@cache
def _groups() -> frozenset[str]:
    return frozenset(each.group for each in granted())


def right_for(request: Request) -> Right | None:
    """The right that a request takes; None for what is no resource, such as `/version`."""
    match locate(request.url).path.strip("/").split("/"):
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            return None
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return None
    verb = _VERBS.get(request.method) or ("get" if rest[1:] else "list")
    return Right(verb, group, "/".join([*rest[:1], *rest[2:]]))


class AuthorizedTransport:
    """Lets pass what the operator may do."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        asked = right_for(request)
        if asked is None or asked in granted() or asked.group not in _groups():
            return self._transport.request(request)
        message = f'cannot {asked.verb} resource "{asked.resource}" in API group "{asked.group}"'
        return refusal_answer(Refusal(403, "Forbidden", f"forbidden: {message}"))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)
