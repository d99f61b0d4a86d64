"""Dry runs of writes, for an operator that only observes (docs/migration.md).

The server validates, admits and checks quota and preconditions as for a real write, so the answer shows both refusals
and the object that a create or patch would produce.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from kube.objects import Json
from kube.resources import EVENTS
from ports.observation import always
from ports.transport import ByteStream, Request, Response, Transport, TransportError

_VERBS: Mapping[str, str] = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
_ALL = "All"


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A write that was not carried out. `before` and `after` are whole objects, or None if absent.

    `resource` is the plural; `subresource` is empty for the object itself, and `before` is None for a subresource.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    before: Json | None
    after: Json | None


class DryRunTransport:
    """Passes reads on and turns writes into dry runs, which it reports to `planned`."""

    def __init__(
        self, transport: Transport, planned: Callable[[PlannedWrite], None], when: Callable[[], bool] = always
    ) -> None:
        """While `when` returns False, everything passes unchanged."""
        self._transport = transport
        self._planned = planned
        self._when = when

    def request(self, request: Request) -> Response:
        """Send a read, or the dry run of a write. Events are dropped, because nothing has happened."""
        if request.is_read or not self._when():
            return self._transport.request(request)
        place = _place(request)
        if place.resource == EVENTS.plural:
            return Response(HTTPStatus.CREATED, {"content-type": "application/json"}, request.body or b"{}")
        before = None if request.method == "POST" or place.subresource else self._object(request)
        answer = self._transport.request(_dry(request))
        if answer.status < HTTPStatus.BAD_REQUEST:
            after = None if request.method == "DELETE" else msgspec.json.decode(answer.body)
            self._planned(replace(place, before=before, after=after, name=place.name or _name(after)))
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)

    def _object(self, request: Request) -> Json | None:
        """The current object that a request would change."""
        answer = self._transport.request(Request("GET", urlsplit(request.url).path, timeout=request.timeout))
        found: Json | None = msgspec.json.decode(answer.body) if answer.status == HTTPStatus.OK else None
        return found


def _dry(request: Request) -> Request:
    """The request with `dryRun`: in the body of a deletion that has one, otherwise in the query."""
    if request.method == "DELETE" and request.body:
        return replace(request, body=msgspec.json.encode(msgspec.json.decode(request.body) | {"dryRun": [_ALL]}))
    url = urlsplit(request.url)
    query = urlencode([*parse_qsl(url.query, keep_blank_values=True), ("dryRun", _ALL)])
    return replace(request, url=url._replace(query=query).geturl())


def _place(request: Request) -> PlannedWrite:
    """The target of a write. Raises TransportError, without sending, for a target that may not support `dryRun`."""
    parts = urlsplit(request.url).path.strip("/").split("/")
    below = parts[2:] if parts[0] == "api" else parts[3:]
    namespace, below = (below[1], below[2:]) if below[:1] == ["namespaces"] and len(below) > 2 else ("", below)
    resource, name, subresource = (*below, "", "", "")[:3]
    if request.method not in _VERBS or not resource or (request.method == "POST" and name) or len(below) > 3:
        raise TransportError(request.method, request.url, "not sent: this process only observes")
    return PlannedWrite(_VERBS[request.method], resource, namespace, name, subresource, None, None)


def _name(made: Json | None) -> str:
    return str(((made or {}).get("metadata") or {}).get("name", ""))
