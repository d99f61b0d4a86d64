"""The operator's rights: requests that manifests/operator does not grant are refused, as by the real API server.

Every plan and test therefore checks them as well. Lists and watches of caches do not pass here; groups without a rule
belong to foreign kinds, whose rights come from elsewhere.
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
    """A verb on a resource in RBAC's form: `tidbclusters/status`."""

    verb: str
    group: str
    resource: str


@cache
def granted() -> frozenset[Right]:
    """The rules of the ClusterRole and the Role."""
    documents = yaml.safe_load_all((manifests.DIRECTORY / _RULES).read_text(encoding="utf-8"))
    return frozenset(
        Right(verb, group, resource)
        for document in documents
        for rule in (document or {}).get("rules", ())
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    )


OF_VOLUME_MODIFYING = frozenset(Right(verb, "storage.k8s.io", "volumeattributesclasses") for verb in ("get", "create"))
"""What the chart grants beside manifests/operator, with the feature VolumeModifying."""


@cache
def _groups() -> frozenset[str]:
    return frozenset(right.group for right in granted())


def right_for(request: Request) -> Right | None:
    """The right that a request needs; None for other paths, e.g. `/version`."""
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
    """Passes requests that the operator is allowed to send."""

    def __init__(self, transport: Transport, more: frozenset[Right] = frozenset()) -> None:
        """`more` are rights beside the ones in manifests/operator."""
        self._transport = transport
        self._rights = granted() | more

    def request(self, request: Request) -> Response:
        asked = right_for(request)
        if asked is None or asked in self._rights or asked.group not in _groups():
            return self._transport.request(request)
        message = f'cannot {asked.verb} resource "{asked.resource}" in API group "{asked.group}"'
        return refusal_answer(Refusal(403, "Forbidden", f"forbidden: {message}"))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)
