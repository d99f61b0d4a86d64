"""Commands of the plugin as they are typed, in front of a client of a test."""

from dataclasses import dataclass, field

import msgspec
import pytest

from cli.tidb.main import parse
from cli.tidb.output import Output
from cli.tidb.session import Session
from kube.client import Client
from kube.config import ClusterConfig
from kube.objects import Json
from ports.clock import Clock, FakeClock
from ports.transport import ByteStream, Request, Response, Transport


@dataclass(frozen=True, slots=True)
class ThisServer:
    """A server that commands need not find."""

    client: Client
    namespace: str = "default"
    contexts: list[str] = field(default_factory=lambda: ["east", "west"])
    config: ClusterConfig = field(default_factory=lambda: ClusterConfig("http://sandbox", "a test"))


class Terminal:
    """The directory in which commands run."""

    def __init__(self, client: Client, printed: pytest.CaptureFixture[str], clock: Clock | None = None) -> None:
        self._server = ThisServer(client)
        self._printed = printed
        self._clock = clock or FakeClock()
        self.complaints = ""

    def type(self, *arguments: str, code: int = 0, width: int = 80) -> str:
        """The output of a command, which must end with that code; stderr is in `complaints`. Passes on its
        exceptions."""
        command, given, handed_on = parse(arguments)
        output = Output(given.output, width)
        assert code == command.run(Session(self._server, self._clock, output, given.namespace), given, handed_on)
        printed = self._printed.readouterr()
        self.complaints = printed.err
        return printed.out

    def document(self, *arguments: str, code: int = 0) -> Json:
        """The document that a command prints."""
        document: Json = msgspec.json.decode(self.type(*arguments, "-o", "json", code=code))
        return document


class ReadOnly:
    """A transport of a user who may read: it fails the test at a write, and remembers what was read."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.paths: list[str] = []

    @property
    def read(self) -> set[str]:
        """The last part of each path: a kind for lists, else a name."""
        return {each.partition("?")[0].rpartition("/")[2] for each in self.paths}

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        assert request.is_read, f"{request.method} {request.url}"
        self.paths.append(request.url)
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        self.paths.append(request.url)
        return self._transport.stream(request, idle_timeout)


class Refusing:
    """A transport of a user without rights to some resources."""

    def __init__(self, transport: Transport, *plurals: str) -> None:
        self._transport, self._plurals = transport, plurals

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if any(f"/{plural}" in request.url for plural in self._plurals):
            body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": f"{request.url} is forbidden"}
            return Response(403, {}, msgspec.json.encode(body))
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)


class Listing:
    """A transport of a server with only these lists, by the plural of their items."""

    def __init__(self, **lists: tuple[str, list[Json]]) -> None:
        """Each with the kind of its items."""
        self._lists = lists

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        plural = request.url.partition("?")[0].rpartition("/")[2]
        kind, items = self._lists[plural]
        return Response(200, {}, msgspec.json.encode({"kind": f"{kind}List", "metadata": {}, "items": items}))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        raise NotImplementedError
