"""The calls between the operator and the outside, which the simulator counts, breaks and checks."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

import msgspec
from structlog.contextvars import get_contextvars

from kube.objects import Json
from ports.transport import ByteStream, Request, Response, Transport

_WITH_A_NUMBER = re.compile(r"[^/]*\d[^/]*")
"""A part of a path with the name of a store, member, pod or version."""


class Port(Enum):
    """A way to the outside."""

    KUBERNETES = "kubernetes"
    DATA_PLANE = "data plane"


class Crash(BaseException):
    """Ends the operator's process; the operator must not catch it."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a Kubernetes request; `resource` is `plural.group`, empty for other paths."""

    resource: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> str:
        """`namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        """`plural.group[/subresource] name`."""
        return f"{self.resource}{'/' if self.subresource else ''}{self.subresource} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Call:
    """One request of an operator process, with its sync and stage (empty outside of syncs)."""

    actor: str
    sync: int
    key: str
    stage: str
    port: Port
    request: Request
    target: Target

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.request.method

    @property
    def path(self) -> str:
        """The path with its query."""
        parts = urlsplit(self.request.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    @property
    def is_write(self) -> bool:
        """True if it may change something."""
        return not self.request.is_read

    @property
    def counts(self) -> bool:
        """True if plans number it; events are best effort, and nothing depends on them."""
        return self.is_write and self.target.resource != "events"

    @property
    def like(self) -> str:
        """The key of similar requests: method, and resource or path, without names and numbers."""
        target = self.target
        if self.port is Port.DATA_PLANE:
            return f"{self.method} {_WITH_A_NUMBER.sub('*', urlsplit(self.request.url).path)}"
        return f"{self.method} {target.resource}/{target.subresource}"

    def body(self) -> Json:
        """The body as a tree; empty if it is no JSON object, such as the TOML that TiProxy takes."""
        try:
            tree = msgspec.json.decode(self.request.body or b"")
        except msgspec.DecodeError:
            return {}
        return tree if isinstance(tree, dict) else {}

    def __str__(self) -> str:
        """Method and target, for traces and summaries."""
        if self.port is Port.DATA_PLANE:
            host = urlsplit(self.request.url).hostname or ""
            return f"{self.method} {host}{self.path}"
        return f"{self.method} {self.target}"


def call(actor: str, sync: int, port: Port, request: Request) -> Call:
    """The call of a request, from the current sync and stage of this thread."""
    bound = get_contextvars()
    target = _target(request) if port is Port.KUBERNETES else Target("", "", "", "")
    return Call(actor, sync, str(bound.get("key", "")), str(bound.get("stage", "")), port, request, target)


def _target(request: Request) -> Target:
    parts = urlsplit(request.url).path.strip("/").split("/")
    match parts:
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            return Target("", "", "", "")
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    if not name and request.body:
        name = str(msgspec.json.decode(request.body).get("metadata", {}).get("name", ""))
    return Target(f"{plural}.{group}" if group else plural, namespace, name, subresource)


Exchange = Callable[[Port, Transport, Request], Response]
"""Carries out a request or a fault. Raises TransportError, Crash."""


class InterceptedTransport:
    """A transport that passes requests to an `Exchange`."""

    def __init__(self, port: Port, transport: Transport, exchange: Exchange) -> None:
        self._port = port
        self._transport = transport
        self._exchange = exchange

    def request(self, request: Request) -> Response:
        """Pass the request on. Raises Crash."""
        return self._exchange(self._port, self._transport, request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Open a stream; the simulated operator opens none."""
        return self._transport.stream(request, idle_timeout)
