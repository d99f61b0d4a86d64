"""An API server for one resource, as a transport: the client runs on top of it unchanged (TEST-1)."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from kube.client import Client
from kube.objects import Json
from kube.resources import PODS, Resource
from ports.transport import ByteStream, ConnectionLost, Request, Response, TransportError

_DEADLINE = 5.0
"""Real seconds a test waits for a thread before it fails."""


@dataclass(frozen=True)
class Recorded:
    """One request as the server saw it."""

    verb: str
    path: str
    params: Mapping[str, str]


@dataclass(frozen=True)
class _Event:
    version: int
    type: str
    object: Json


class FakeStream:
    """A watch; a read blocks until there is a line, the watch ends, or it is aborted."""

    status = 200

    def __init__(self, wanted: "_Wanted", idle_timeout: float) -> None:
        self.headers: Mapping[str, str] = {}
        self.wanted = wanted
        self.idle_timeout = idle_timeout
        self.closed = False
        self._condition = threading.Condition()
        self._lines: deque[bytes | TransportError | None] = deque()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            with self._condition:
                if not self._condition.wait_for(lambda: self._lines, 60):
                    raise AssertionError("a watch was read for a minute without an event")
                line = self._lines.popleft()
            if line is None:
                return
            if isinstance(line, TransportError):
                raise line
            yield line

    def would_block(self) -> bool:
        """True if a read would wait."""
        return not self._lines

    def send(self, line: bytes | TransportError | None) -> None:
        """Send the reader a line, the end (None), or an error."""
        with self._condition:
            self._lines.append(line)
            self._condition.notify_all()

    def abort(self) -> None:
        with self._condition:
            self._lines.clear()
            self._lines.append(ConnectionLost("GET", "watch", "aborted"))
            self._condition.notify_all()

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class _Wanted:
    """The objects that a request selects; selectors have the form `k=v,k=v`."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def selects(self, obj: Json) -> bool:
        meta = obj["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        return bool(self.labels.items() <= meta.get("labels", {}).items())


class FakeSource:
    """Objects with versions, lists and watches of them, faults on demand, and a record of the requests."""

    def __init__(self, resource: Resource = PODS, *, watch_cache: bool = True) -> None:
        """`watch_cache` False: lists at version "0" are paginated, too."""
        self.resource = resource
        self.requests: list[Recorded] = []
        self._watch_cache = watch_cache
        self.largest_page = 0
        """The size of the pages that the server sends, whatever the limit of the request; 0 honours the limit."""
        self._condition = threading.Condition(threading.RLock())
        self._objects: dict[str, Json] = {}
        self._events: list[_Event] = []
        self._version = 10
        self._oldest = 0
        self.streams: list[FakeStream] = []
        self.last_stream: FakeStream | None = None
        self._faults: dict[str, deque[TransportError | Response | None]] = {"LIST": deque(), "WATCH": deque()}
        self._before_list: Callable[[], object] = lambda: None
        self.completes_streams = True
        """True if a bookmark marks the end of the initial events."""

    def client(self) -> Client:
        """A client of this server."""
        return Client(self)

    # what the server's other users do

    def add(self, obj: Json) -> Json:
        """Create an object and send the event to the watches."""
        return self._change("ADDED", obj)

    def modify(self, obj: Json) -> Json:
        """Replace an object and send the event to the watches."""
        return self._change("MODIFIED", obj)

    def delete(self, key: str) -> None:
        """Delete an object and send the event to the watches."""
        with self._condition:
            self._change("DELETED", self._objects[key])

    def add_drop_watch(self, obj: Json) -> Json:
        """Create or replace an object; no watch ever hears of it."""
        return self._change("ADDED", obj, tell=False)

    modify_drop_watch = add_drop_watch

    def delete_drop_watch(self, key: str) -> None:
        """Delete an object; no watch ever hears of it."""
        with self._condition:
            self._change("DELETED", self._objects[key], tell=False)

    def reset_watch(self) -> None:
        """End all watches; versions up to now are expired."""
        with self._condition:
            self._oldest = self._version + 1
            self._version += 1
            self.end_watches()

    def end_watches(self) -> None:
        """End all watches as a server does when their time is up."""
        self.send(None)

    def break_watches(self) -> None:
        """Cut the connections of all watches."""
        self.send(ConnectionLost("GET", "watch", "connection reset by peer"))

    def send_event(self, event_type: str, obj: Any) -> None:
        """Send any event to all watches."""
        self.send(_line(event_type, obj))

    def repeat_last_event(self) -> None:
        """Send the last change to all watches once more."""
        with self._condition:
            if self._events:
                self.send_event(self._events[-1].type, self._events[-1].object)

    def send_error(self, code: int, reason: str, message: str = "no") -> None:
        """Send an ERROR event to all watches and end them."""
        with self._condition:
            self.send_event("ERROR", status(code, reason, message))
            self.end_watches()

    def bookmark(self) -> str:
        """Send a bookmark of a new version to all watches; return the version."""
        with self._condition:
            self._version += 1
            self.send_event("BOOKMARK", self._complete({"metadata": {"resourceVersion": self.version}}))
            return self.version

    def send(self, line: bytes | TransportError | None) -> None:
        """Send an event to the readers of all watches."""
        with self._condition:
            streams = self.streams
            if not isinstance(line, bytes):
                self.streams = []
            for stream in streams:
                stream.send(line)

    def fail(self, verb: str, *faults: TransportError | Response | None) -> None:
        """Answer the next requests of a verb (LIST, WATCH) with these; None lets one pass."""
        with self._condition:
            self._faults[verb].extend(faults)

    def before_list(self, callback: Callable[[], object]) -> None:
        """Run `callback` in the thread that lists, before each list."""
        self._before_list = callback

    # for tests to inspect

    @property
    def version(self) -> str:
        """The version of the last change."""
        return str(self._version)

    def objects(self) -> dict[str, Json]:
        """The stored objects by key."""
        with self._condition:
            return dict(self._objects)

    def params(self, verb: str, name: str) -> list[str]:
        """The values of one parameter in all requests of a verb; empty text where it was not given."""
        with self._condition:
            return [request.params.get(name, "") for request in self.requests if request.verb == verb]

    def count(self, verb: str) -> int:
        """The number of requests of a verb."""
        return len(self.params(verb, ""))

    def wait_for(self, verb: str, count: int) -> None:
        """Wait until there were `count` requests of a verb."""
        with self._condition:
            if not self._condition.wait_for(lambda: self.count(verb) >= count, _DEADLINE):
                raise AssertionError(f"{self.count(verb)} {verb} requests, expected {count}: {self.requests}")

    def wait_for_open_watches(self, count: int = 1) -> None:
        """Wait until this many watches are open."""
        with self._condition:
            if not self._condition.wait_for(lambda: len(self.streams) >= count, _DEADLINE):
                raise AssertionError(f"{len(self.streams)} open watches, expected {count}")

    # the transport

    def request(self, request: Request) -> Response:
        path, params = _split(request.url)
        self._before_list()
        with self._condition:
            self._record("LIST", path, params)
            if fault := self._next_fault("LIST"):
                if isinstance(fault, Response):
                    return fault
                raise fault
            return Response(200, {}, json.dumps(self._list(_wanted(path, params), params)).encode())

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        path, params = _split(request.url)
        with self._condition:
            self._record("WATCH", path, params)
            if fault := self._next_fault("WATCH"):
                if isinstance(fault, Response):
                    return _Refusal(fault)
                raise fault
            return self._watch(FakeStream(_wanted(path, params), idle_timeout), params)

    def _list(self, wanted: _Wanted, params: Mapping[str, str]) -> Json:
        items = [obj for obj in self._objects.values() if wanted.selects(obj)]
        # items of a list carry neither apiVersion nor kind
        items = [{name: obj[name] for name in obj if name not in {"apiVersion", "kind"}} for obj in items]
        start = int(params.get("continue", "0"))
        from_cache = self._watch_cache and params.get("resourceVersion") == "0"
        size = self.largest_page or (0 if from_cache else int(params.get("limit", "0")))
        end = start + size if size else None
        meta = {"resourceVersion": self.version}
        if end is not None and end < len(items):
            meta["continue"] = str(end)
        return {"apiVersion": "v1", "kind": f"{self.resource.kind}List", "metadata": meta, "items": items[start:end]}

    def _watch(self, stream: FakeStream, params: Mapping[str, str]) -> FakeStream:
        self.last_stream = stream
        if "sendInitialEvents" in params:
            return self._stream_list(stream)
        since = int(params["resourceVersion"])
        if since < self._oldest:
            stream.send(_line("ERROR", status(410, "Expired", "too old resource version")))
            stream.send(None)
            return stream
        for event in self._events:
            if event.version > since and stream.wanted.selects(event.object):
                stream.send(_line(event.type, event.object))
        self.streams.append(stream)
        self._condition.notify_all()
        return stream

    def _stream_list(self, stream: FakeStream) -> FakeStream:
        for obj in filter(stream.wanted.selects, self._objects.values()):
            stream.send(_line("ADDED", obj))
        if self.completes_streams:
            stream.send(_line("BOOKMARK", self.end_of_initial_events()))
        self.streams.append(stream)
        self._condition.notify_all()
        return stream

    def end_of_initial_events(self, says: str = "true") -> Json:
        """The object of the bookmark after the initial events."""
        meta = {"resourceVersion": self.version, "annotations": {"k8s.io/initial-events-end": says}}
        return self._complete({"metadata": meta})

    def _change(self, event_type: str, obj: Json, *, tell: bool = True) -> Json:
        with self._condition:
            self._version += 1
            obj = self._complete(obj)
            obj["metadata"] |= {"resourceVersion": self.version}
            key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
            if event_type == "DELETED":
                del self._objects[key]
            else:
                self._objects[key] = obj
            if tell:
                self._events.append(_Event(self._version, event_type, obj))
                for stream in self.streams:
                    if stream.wanted.selects(obj):
                        stream.send(_line(event_type, obj))
            return obj

    def _complete(self, obj: Json) -> Json:
        known = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
        return known | obj | {"metadata": dict(obj["metadata"])}

    def _record(self, verb: str, path: str, params: Mapping[str, str]) -> None:
        self.requests.append(Recorded(verb, path, params))
        self._condition.notify_all()

    def _next_fault(self, verb: str) -> TransportError | Response | None:
        return self._faults[verb].popleft() if self._faults[verb] else None


class _Refusal:
    """A watch that was answered with an error status."""

    def __init__(self, answer: Response) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._body = answer.body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass


def pod(name: str, namespace: str = "ns", **labels: str) -> Json:
    """A small pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels},
        "spec": {"containers": []},
    }


def status(code: int, reason: str, message: str = "no") -> Json:
    """The body of a refusal."""
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}


def refusal(code: int, reason: str, message: str = "no", **more: Any) -> Response:
    """The answer of a server that refuses."""
    return Response(code, {}, json.dumps(status(code, reason, message) | more).encode())


def _line(event_type: str, obj: Any) -> bytes:
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"


def _split(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    return parts.path, dict(parse_qsl(parts.query))


def _wanted(path: str, params: Mapping[str, str]) -> _Wanted:
    parts = path.split("/")
    namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
    selector = params.get("labelSelector", "")
    return _Wanted(namespace, dict(part.split("=") for part in selector.split(",") if part))
