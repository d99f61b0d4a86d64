"""Writes that the API server judges and answers, and does not keep: for who only observes (docs/migration.md).

What would be refused is refused, by validation, admission, quota and preconditions alike, and what a create or a patch
would make is seen.
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
    """What would have been written. `before` and `after` are whole objects, None of what is not there.

    `resource` is the plural, `subresource` empty for the object itself; of a subresource, `before` is not read.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    before: Json | None
    after: Json | None


class DryRunTransport:
    """Lets reads pass, and has everything else only tried; `planned` is told of what would have been done."""

    def __init__(
        self, transport: Transport, planned: Callable[[PlannedWrite], None], when: Callable[[], bool] = always
    ) -> None:
        """While `when` does not hold, everything passes."""
        self._transport = transport
        self._planned = planned
        self._when = when

    def request(self, request: Request) -> Response:
        """See `Transport`. Events are not even tried: nothing has happened."""
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
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)

    def _object(self, request: Request) -> Json | None:
        """The object that a request is about, as it is."""
        answer = self._transport.request(Request("GET", urlsplit(request.url).path, timeout=request.timeout))
        found: Json | None = msgspec.json.decode(answer.body) if answer.status == HTTPStatus.OK else None
        return found


def _dry(request: Request) -> Request:
    """The request with `dryRun`, which a deletion takes from its body where it has one."""
    if request.method == "DELETE" and request.body:
        return replace(request, body=msgspec.json.encode(msgspec.json.decode(request.body) | {"dryRun": [_ALL]}))
    url = urlsplit(request.url)
    query = urlencode([*parse_qsl(url.query, keep_blank_values=True), ("dryRun", _ALL)])
    return replace(request, url=url._replace(query=query).geturl())


def _place(request: Request) -> PlannedWrite:
    """Where a request writes. Raises TransportError for what is not known to take `dryRun`: it is not sent."""
    parts = urlsplit(request.url).path.strip("/").split("/")
    below = parts[2:] if parts[0] == "api" else parts[3:]
    namespace, below = (below[1], below[2:]) if below[:1] == ["namespaces"] and len(below) > 2 else ("", below)
    resource, name, subresource = (*below, "", "", "")[:3]
    if request.method not in _VERBS or not resource or (request.method == "POST" and name) or len(below) > 3:
        raise TransportError(request.method, request.url, "not sent: this process only observes")
    return PlannedWrite(_VERBS[request.method], resource, namespace, name, subresource, None, None)


def _name(made: Json | None) -> str:
    return str(((made or {}).get("metadata") or {}).get("name", ""))
