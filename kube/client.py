"""The verbs of the Kubernetes API over a transport (informers-workqueue.md 9, 10).

One call is one request; the client turns refusals into typed errors. The transport below throttles, retries, and asks
the fence before each write (`kube.retrying`).
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec

from kube import tables
from kube.errors import STATUS, ApiError, NotFound, Status, error_from_answer, error_from_status
from kube.list_splitting import ListSplitter
from kube.objects import Json, Object
from kube.resources import PODS, Resource
from ports import effects
from ports.product import USER_AGENT
from ports.structs import UNREADABLE
from ports.transport import ByteStream, Request, Response, Transport

T = TypeVar("T")

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
"""The body may be JSON, which is YAML."""

_JSON = "application/json"
_METADATA_VERSION = "meta.k8s.io/v1"
METADATA_KIND = "PartialObjectMetadata"
"""The kind of objects that are requested without their bodies (INF-50)."""

_OVERTIME = 30.0
"""Seconds that a watch may outlive its own timeout before it counts as dead (TH-13)."""

WATCH_SILENCE = 180.0
"""Seconds without a line, bookmarks included, after which a watch counts as dead (TH-13)."""


_LOG_SILENCE = 86400.0
"""Seconds without a line after which a log stream counts as ended."""

_LONGEST_LINE = 1 << 24
"""The maximum size of an event in bytes; etcd holds objects of one or two million."""

_LONGEST_REFUSAL = 1 << 20
"""The maximum size of a refusal in bytes; the rest is not read."""

_LONGEST_PENDING = 1 << 26
"""The maximum number of bytes of a list without a complete item; etcd holds objects of one or two million."""

_LONGEST_PAGE = 1 << 30
"""The maximum size of a page of a list in bytes: more than an API server could hold in its own memory."""


OnReceived: TypeAlias = Callable[[], None]
"""Called for each received piece of a list."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list: the objects, the list's version, and the token of the next page.

    `unreadable` identifies each item that is not an object of the resource, and gives the reason.
    """

    items: list[Object]
    resource_version: str
    continue_token: str = ""
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch. `object` is an Object, or an ApiError for ERROR events and malformed objects (REF-24).

    The object of a BOOKMARK has only resourceVersion and annotations.
    """

    type: str
    object: Object | ApiError


class Watch:
    """An open watch. One thread iterates; `abort` from another thread ends it."""

    def __init__(self, stream: ByteStream, resource: Resource, *, metadata_only: bool = False) -> None:
        self._stream = stream
        self._api_version, self._kind = _kind_of(resource, metadata_only)

    def __iter__(self) -> Iterator[WatchEvent]:
        """Events in order until the server ends the watch. Raises TransportError if the stream breaks.

        A line beyond the maximum size becomes an ERROR event, the last one.
        """
        try:
            for line in _lines(self._stream):
                yield self._event(line)
        except _EndlessLine:
            endless = Status(code=500, message=f"a watch line of more than {_LONGEST_LINE} bytes")
            yield WatchEvent("ERROR", error_from_status(endless))

    def _event(self, line: bytes) -> WatchEvent:
        try:
            event = _EVENT.decode(line)
            if event.type == "ERROR":
                return WatchEvent("ERROR", error_from_status(STATUS.decode(event.object)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # REF-30: an unreadable line is an internal error of the stream
            return WatchEvent("ERROR", error_from_status(Status(code=500, message=f"undecodable watch line: {error}")))
        except RecursionError as error:
            # only an object is nested that deeply; without the object the event's type does not matter
            return WatchEvent("", error_from_status(Status(code=500, message=f"no object: {error}")))
        try:
            return WatchEvent(event.type, Object(bytes(event.object), self._api_version, self._kind))
        except msgspec.DecodeError as error:
            # REF-24: one object without metadata must not end the watch
            return WatchEvent(event.type, error_from_status(Status(code=500, message=f"no object: {error}")))

    def abort(self) -> None:
        """End a read that blocks in another thread."""
        self._stream.abort()

    def close(self) -> None:
        """Release the connection. Only the reading thread calls it."""
        self._stream.close()


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_EVENT = msgspec.json.Decoder(_RawEvent)


class _ListReading:
    """A list that is being received; objects are built while the rest is still arriving.

    A malformed item does not fail the list: it is omitted and reported.
    """

    def __init__(self, api_version: str, kind: str, on_received: OnReceived) -> None:
        """The items have this `api_version` and `kind`."""
        self._api_version = api_version
        self._kind = kind
        self._on_received = on_received
        self._splitter = ListSplitter()
        self._items: list[Object] = []
        self._unreadable: list[str] = []
        self._received = 0

    def begin(self) -> Callable[[bytes], None]:
        """Discard what a failed attempt has received."""
        self._splitter = ListSplitter()
        self._items, self._unreadable = [], []
        self._received = 0
        return self.receive

    def receive(self, chunk: bytes) -> None:
        """Take the next piece. Raises ApiError if the list or an item exceeds its maximum size."""
        self._on_received()
        self._received += len(chunk)
        self._keep(self._splitter.feed(chunk))
        if self._splitter.pending > _LONGEST_PENDING or self._received > _LONGEST_PAGE:
            limit = "one page" if self._received > _LONGEST_PAGE else "a list without a complete item"
            raise ApiError(Status(code=500, message=f"gave up after {self._received} bytes of {limit}"))

    def end(self, request: str) -> ListPage:
        """The page. Raises ApiError for an answer of another kind, msgspec.DecodeError if it is not a list."""
        rest = self._splitter.end()
        if rest.kind != f"{self._kind}List":
            why = f"the server answered a {rest.kind} instead of a {self._kind}List"
            raise ApiError(Status(code=406, message=why), request)
        if rest.items is msgspec.UNSET:
            raise msgspec.DecodeError(f"a {rest.kind} without `items`")
        self._keep(bytes(raw) for raw in rest.items or ())
        meta = rest.metadata
        return ListPage(self._items, meta.resource_version or "", meta.continue_ or "", tuple(self._unreadable))

    def _keep(self, raws: Iterable[bytes]) -> None:
        for raw in raws:
            try:
                obj = Object(raw, self._api_version, self._kind)
            except msgspec.DecodeError as error:
                self._unreadable.append(f"{_name_of(raw)}: {error}")
                continue
            if obj.kind != self._kind or not obj.metadata.name:
                what = f"is a {obj.kind}" if obj.metadata.name else "has no name"
                self._unreadable.append(f"{_name_of(raw)}: {what}")
                continue
            self._items.append(obj)


class Client:
    """A client of one cluster, under one identity."""

    def __init__(
        self,
        transport: Transport,
        user_agent: str = USER_AGENT,
        timeout: float = 30.0,
        watch_silence: float = WATCH_SILENCE,
        instead: Mapping[Resource, Resource] = MappingProxyType({}),
    ) -> None:
        """Send through `transport`; `timeout` is the seconds for a request, or for the headers of a watch.

        A watch breaks after `watch_silence` seconds without data; servers send a bookmark about once a minute.
        `instead` has the resources that requests address, by those that callers name, e.g. of another group.
        """
        self._transport = transport
        self._timeout = timeout
        self._watch_silence = watch_silence
        self._headers = {"user-agent": user_agent}
        self._instead = instead

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Read one object live. Raises NotFound and other ApiErrors."""
        resource = self._addressed(resource)
        return self._object(resource, self.request("GET", resource.path(namespace, name)))

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Read one object live; None only if the server reports that this very object does not exist (F1).

        Raises NotFound if the server does not know the resource, other ApiErrors, TransportError.
        """
        try:
            return self.get(resource, name, namespace)
        except NotFound as error:
            if error.reason == "NotFound" and error.details.name == name:
                return None
            raise

    def get_as(self, path: str, decoder: msgspec.json.Decoder[T]) -> T:
        """Read a path and decode the answer. Raises ApiError, also for an answer that cannot be decoded,
        TransportError.
        """
        answer = self.request("GET", path)
        with readable(f"GET {path}"):
            return decoder.decode(answer.body)

    def list_page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str | None = None,
        resource_version_match: str = "",
        limit: int = 0,
        continue_token: str = "",
        metadata_only: bool = False,
        on_received: OnReceived = lambda: None,
    ) -> ListPage:
        """One page of a list; items are split without decoding their bodies (TH-6).

        With `metadata_only` the server omits the bodies (INF-50). `on_received` is called for each received piece.
        """
        resource = self._addressed(resource)
        query = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version or "",
            resourceVersionMatch=resource_version_match,
            limit=str(limit) if limit else "",
            **{"continue": continue_token},
        )
        accept = _accept(f"{METADATA_KIND}List") if metadata_only else _JSON
        reading = _ListReading(*_kind_of(resource, metadata_only), on_received)
        what = f"LIST {resource}"
        with readable(what):
            answer = self.request("GET", resource.path(namespace) + query, accept=accept, receiver=reading.begin)
            reading.receive(answer.body)
            return reading.end(what)

    def list_names(self, resource: Resource, namespace: str = "") -> list[str]:
        """The names of all objects, at a tenth of the cost of a list. Raises ApiError, TransportError."""
        resource = self._addressed(resource)
        what, query = f"LIST {resource}", _query(includeObject="None")
        answer = self.request("GET", resource.path(namespace) + query, accept=_accept(tables.KIND))
        with readable(what):
            return tables.names_in(answer.body, what)

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        timeout_seconds: int,
        label_selector: str = "",
        field_selector: str = "",
        options: Mapping[str, str] | None = None,
        silence: float | None = None,
        metadata_only: bool = False,
    ) -> Watch:
        """Open a watch with bookmarks. Raises ApiError if the server refuses, TransportError if it is unreachable.

        The watch breaks after `silence` seconds without a byte (default: the client's). With `metadata_only` the server
        omits the bodies (INF-50).
        """
        resource = self._addressed(resource)
        query = _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_seconds),
            labelSelector=label_selector,
            fieldSelector=field_selector,
            **(options or {}),
        )
        path = resource.path(namespace) + query
        accept = _accept(METADATA_KIND) if metadata_only else _JSON
        patience = min(timeout_seconds + _OVERTIME, silence or self._watch_silence)
        return Watch(self._stream("WATCH", path, accept, patience), resource, metadata_only=metadata_only)

    def log(self, pod: str, namespace: str, **options: str) -> ByteStream:
        """The log of a container as text; the options (`container`, `follow`, `tailLines`, ...) are the core/v1 API's.

        Raises ApiError if the server refuses, e.g. for a container that has not started, TransportError.
        """
        return self._stream("GET", PODS.path(namespace, pod, "log") + _query(**options), "*/*", _LOG_SILENCE)

    def _stream(self, verb: str, path: str, accept: str, patience: float) -> ByteStream:
        headers = self._headers | {"accept": accept, "accept-encoding": "identity"}
        request = Request("GET", path, headers, timeout=self._timeout)
        stream = self._transport.stream(request, idle_timeout=patience)
        if stream.status != 200:
            with contextlib.closing(stream):
                body = _beginning(stream)
            raise error_from_answer(stream.status, body, f"{verb} {path}")
        return stream

    def create(self, resource: Resource, body: Json, namespace: str = "") -> Object:
        """Create an object. Raises AlreadyExists, Invalid and other ApiErrors."""
        resource, body = self._addressed(resource), self._as_addressed(resource, body)
        return self._object(resource, self.request("POST", resource.path(namespace), body=body))

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Json | list[Json],
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
    ) -> Object:
        """Patch an object or a subresource. Raises Conflict if the patch contains an outdated resourceVersion."""
        resource = self._addressed(resource)
        path = resource.path(namespace, name, subresource)
        return self._object(resource, self.request("PATCH", path, body=patch, content_type=content_type))

    def apply(
        self,
        resource: Resource,
        body: Json,
        namespace: str = "",
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
    ) -> Object:
        """Create or change an object by server-side apply; `manager` becomes the owner of the fields in `body`.

        The API server removes fields that the manager applied before and now omits. Raises Conflict if another manager
        owns a field with another value; with `force` the field changes its owner.
        """
        resource, body = self._addressed(resource), self._as_addressed(resource, body)
        whole = {"apiVersion": resource.api_version, "kind": resource.kind} | body
        path = resource.path(namespace, body["metadata"]["name"], subresource)
        query = _query(fieldManager=manager, force="true" if force else "")
        return self._object(resource, self.request("PATCH", path + query, body=whole, content_type=APPLY_PATCH))

    def try_create(self, resource: Resource, body: Json, namespace: str = "") -> Object:
        """The object that a creation would produce, with the defaults of the server; changes nothing.

        Raises like `create`.
        """
        resource, body = self._addressed(resource), self._as_addressed(resource, body)
        path = resource.path(namespace) + _query(dryRun="All")
        return self._object(resource, self.request("POST", path, body=body, only_asks=True))

    def try_patch(self, resource: Resource, name: str, namespace: str, patch: Json) -> Object:
        """The object that a merge patch would produce; changes nothing. Raises like `patch`."""
        resource = self._addressed(resource)
        path = resource.path(namespace, name) + _query(dryRun="All")
        answer = self.request("PATCH", path, body=patch, content_type=MERGE_PATCH, only_asks=True)
        return self._object(resource, answer)

    def replace(self, resource: Resource, name: str, namespace: str, body: Json, *, subresource: str = "") -> Object:
        """Replace an object; the resourceVersion in the body is the precondition."""
        resource, body = self._addressed(resource), self._as_addressed(resource, body)
        return self._object(resource, self.request("PUT", resource.path(namespace, name, subresource), body=body))

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete an object if it still has `uid` and `resource_version`. Raises NotFound, Conflict."""
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions := _without_empty(uid=uid, resourceVersion=resource_version):
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        self.request("DELETE", self._addressed(resource).path(namespace, name), body=options)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Json | list[Json] | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
        timeout: float | None = None,
        receiver: Callable[[], Callable[[bytes], None]] | None = None,
        only_asks: bool = False,
    ) -> Response:
        """Send one request and return a successful answer. Raises ApiError, TransportError, LeaseExpired.

        `receiver` takes long bodies, `only_asks` marks requests that change nothing; see `ports.transport.Request`.
        """
        headers = self._headers | {"accept": accept}
        if body is not None:
            headers["content-type"] = content_type
        payload = None if body is None else msgspec.json.encode(body)
        effects.note()
        request = Request(method, path, headers, payload, timeout or self._timeout, receiver, only_asks)
        answer = self._transport.request(request)
        if not 200 <= answer.status < 300:
            raise error_from_answer(answer.status, answer.body, f"{method} {path}")
        return answer

    def _addressed(self, resource: Resource) -> Resource:
        return self._instead.get(resource, resource)

    def _as_addressed(self, resource: Resource, body: Json) -> Json:
        """The body with the apiVersion of the resource that is addressed, if that is another one."""
        addressed = self._addressed(resource)
        return body if addressed is resource else body | {"apiVersion": addressed.api_version}

    def _object(self, resource: Resource, answer: Response) -> Object:
        return read_object(answer.body, resource)


def read_object(body: bytes, resource: Resource) -> Object:
    """The object in an answer. Raises ApiError for any other content, e.g. a proxy's page with status 200."""
    with readable(str(resource)):
        found = Object(body, resource.api_version, resource.kind)
    if found.kind != resource.kind:
        why = f"the server answered a {found.kind} instead of a {resource.kind}"
        raise error_from_status(Status(code=500, message=why), str(resource))
    return found


@contextlib.contextmanager
def readable(request: str) -> Iterator[None]:
    """Within the block, turn decoding errors into ApiError: an unreadable answer is a failure of the server."""
    try:
        yield
    except UNREADABLE as error:
        raise error_from_status(Status(code=500, message=f"undecodable answer: {error}"), request) from error


def _name_of(raw: bytes) -> str:
    """The name of an item, if it is readable; nothing else, because an item may be secret."""
    try:
        meta = _ITEM.decode(raw).metadata
    except UNREADABLE:
        return "an item"
    namespace, name = (meta.get(key) for key in ("namespace", "name"))
    return f"item {namespace or ''}/{name or ''}"


class _Named(msgspec.Struct):
    metadata: dict[str, Any]


_ITEM = msgspec.json.Decoder(_Named)


def _kind_of(resource: Resource, metadata_only: bool) -> tuple[str, str]:
    """The apiVersion and kind that the server sends."""
    return (_METADATA_VERSION, METADATA_KIND) if metadata_only else (resource.api_version, resource.kind)


def _accept(kind: str) -> str:
    return f"{_JSON};as={kind};g=meta.k8s.io;v=v1"


def _query(**parameters: Any) -> str:
    given = _without_empty(**parameters)
    return "?" + urlencode(given) if given else ""


def _without_empty(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _beginning(stream: ByteStream) -> bytes:
    """The beginning of a refusal, up to its maximum size."""
    body = bytearray()
    for chunk in stream:
        body += chunk
        if len(body) >= _LONGEST_REFUSAL:
            break
    return bytes(body[:_LONGEST_REFUSAL])


class _EndlessLine(Exception):
    """Raised for a line beyond the maximum size."""


def _lines(chunks: ByteStream) -> Iterator[bytes]:
    """Split a stream into lines, reading each byte once (TH-18). Raises _EndlessLine."""
    pending = bytearray()
    for chunk in chunks:
        start = len(pending)
        pending += chunk
        while (end := pending.find(b"\n", start)) >= 0:
            line = bytes(pending[:end])
            del pending[: end + 1]
            start = 0
            if line.strip():
                yield line
        if len(pending) > _LONGEST_LINE:
            raise _EndlessLine
    if pending.strip():
        yield bytes(pending)
