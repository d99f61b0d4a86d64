"""Servers of data planes that answer as no server should, and the proxy through which an operator reaches them.

Each namespace has one way to answer. All servers of a hostile namespace, whether PD, TiKV, TiDB or DM, answer alike,
and their SQL ports, too. What they say has a mark by which a test finds it again.

The proxy gives the connections of hostile servers to a process of its own (`python -m tests.security.hostile_servers`):
what they send without end must not take the time of the honest servers, nor of the API server.
"""

import contextlib
import gzip
import itertools
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ports.transport import Request, Response, Transport, TransportError
from tests.e2e.waiting import pause

MARK = "said-by-a-hostile-server"
"""A text that no object, event, metric or log may show."""

OUTSIDE = ("169.254.169.254", "member-pd-0.member-pd-peer.bystander.svc", "host.example", "127.0.0.1")
"""Hosts outside all clusters; the last one is the canary's listener."""

_PD_PORT = 2379
_PIECE = b"x" * (1 << 16)
_ANNOUNCED = re.compile(r"^(https?://)?[\w.-]+:\d+(/.*)?$")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Asked(msgspec.Struct, frozen=True):
    """A question that an operator has sent, and what the server would answer if it were honest."""

    mode: str
    """The server's mode, or the number of a mode of SQL ports."""
    url: str
    honest: bytes
    canary: int


Mode = Callable[[Asked], Iterable[bytes]]
"""The pieces that a server sends; the operator may close the connection at any of them."""


def _whole(body: bytes, head: bytes = _HEAD) -> list[bytes]:
    return [head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body]


def _redirecting(*locations: str, status: int = 302) -> Mode:
    turns = itertools.cycle(locations)

    def mode(asked: Asked) -> Iterable[bytes]:
        host = urlsplit(asked.url).hostname or ""
        location = next(turns).format(canary=asked.canary, host=host)
        head = f"HTTP/1.1 {status} Found\r\nLocation: {location}\r\n"
        return _whole(MARK.encode(), head.encode())

    return mode


def _without_end(first: bytes, piece: bytes = _PIECE) -> Mode:
    return lambda _: itertools.chain([first], itertools.repeat(piece))


def _slowly(first: bytes) -> Mode:
    def mode(_: Asked) -> Iterator[bytes]:
        yield first
        while True:
            pause(0.2)
            yield b"x"

    return mode


def _changing(change: Callable[[object, Asked], object]) -> Mode:
    """The honest answer with other values in it."""

    def mode(asked: Asked) -> Iterable[bytes]:
        try:
            tree = msgspec.json.decode(asked.honest)
        except msgspec.DecodeError:
            tree = {MARK: MARK}
        return _whole(msgspec.json.encode(_changed(tree, lambda value: change(value, asked))))

    return mode


def _changed(tree: Any, change: Callable[[object], object]) -> object:
    if isinstance(tree, dict):
        return {key: _changed(value, change) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_changed(each, change) for each in tree]
    return change(tree)


def _enormous(value: object, _: Asked) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return msgspec.Raw(b"9" * 400) if is_number else value


def _negative(value: object, _: Asked) -> object:
    return -abs(value) - 1 if isinstance(value, int) and not isinstance(value, bool) else value


def _controlling(value: object, _: Asked) -> object:
    return f"{value}\x1b[2J\u202e{MARK}" if isinstance(value, str) else value


_FOREIGN = itertools.cycle(OUTSIDE)


def _foreign(value: object, asked: Asked) -> object:
    if not isinstance(value, str) or not _ANNOUNCED.match(value):
        return value
    host = next(_FOREIGN)
    port = asked.canary if host == OUTSIDE[-1] else 2379
    return f"http://{host}:{port}/{MARK}" if "://" in value else f"{host}:{port}"


def _crowded(asked: Asked) -> Iterable[bytes]:
    """Each list of the honest answer with a million of its first."""
    tree = msgspec.json.decode(asked.honest) if asked.honest.lstrip()[:1] in (b"{", b"[") else []
    first = next(_lists(tree), [MARK])[:1]
    piece = msgspec.json.encode(first[0]) + b"," if first else b"{},"
    return itertools.chain(
        [_HEAD + b'\r\n{"stores":[' if isinstance(tree, dict) else _HEAD + b"\r\n["],
        itertools.repeat(piece * 100, 10_000),
    )


def _lists(tree: object) -> Iterator[list[Any]]:
    if isinstance(tree, list):
        yield tree
    for each in tree.values() if isinstance(tree, dict) else ():
        yield from _lists(each)


def _cut(asked: Asked) -> Iterable[bytes]:
    """Half a body, after which the connection is reset."""
    return [_HEAD + f"Content-Length: {len(asked.honest) + 100}\r\n\r\n".encode() + asked.honest[:20]]


_BOMB = gzip.compress(bytes(64 << 20))
_LONG_LINE = b"X-Long: " + MARK.encode() + b"x" * 60_000 + b"\r\n"

MODES: Mapping[str, Mode] = {
    "redirect-to-a-host": _redirecting("http://{canary}.host.example:80/" + MARK, "http://127.0.0.1:{canary}/" + MARK),
    "redirect-to-metadata": _redirecting(f"http://169.254.169.254/{MARK}", status=307),
    "redirect-to-a-file": _redirecting(f"file:///etc/passwd?{MARK}"),
    "redirect-to-another-cluster": _redirecting(f"http://{OUTSIDE[1]}:2379/{MARK}", status=307),
    "redirect-to-itself": _redirecting("http://{host}:2379/" + MARK, status=307),
    "body-without-end": _without_end(_CHUNKED, b"10000\r\n" + _PIECE + b"\r\n"),
    "body-until-closed": _without_end(_HEAD + b"\r\n"),
    "headers-without-end": _without_end(_HEAD, _LONG_LINE),
    "header-without-end": _without_end(_HEAD + b"X-Long: "),
    "trailers-without-end": _without_end(_CHUNKED + b"2\r\n{}\r\n0\r\n", _LONG_LINE),
    "continues-without-end": _without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "slow-body": _slowly(_HEAD + b"Content-Length: 1000\r\n\r\n"),
    "slow-headers": _slowly(_HEAD + b"X-Slow: "),
    "bomb": lambda _: _whole(_BOMB, _HEAD + b"Content-Encoding: gzip\r\n"),
    "two-gigabytes": _without_end(_HEAD + b"Content-Length: 2147483648\r\n\r\n"),
    "html": lambda _: _whole(f"<html>{MARK}</html>".encode(), b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"),
    "html-of-an-error": lambda _: _whole(f"<h1>{MARK}</h1>".encode(), b"HTTP/1.1 500 Oops\r\nContent-Type: a/b\r\n"),
    "deep-json": lambda _: _whole(b'{"members":' + b"[" * 200_000),
    "enormous-numbers": _changing(_enormous),
    "negative-numbers": _changing(_negative),
    "control-characters": _changing(_controlling),
    "foreign-addresses": _changing(_foreign),
    "crowds": _crowded,
    "cut": _cut,
    "no-http": lambda _: [b"\0\xff" + MARK.encode() + b"\n" + b"\x1b[2J" * 1000],
}

_GREETING = b"\x0a8.0.11-TiDB-v8.5.0\0\x07\0\0\0" + b"12345678\0" + b"\xff\xf7\x2d\x02\0\xff\xff\x15" + b"\0" * 10
_SQL_GREETING = _GREETING + b"123456789012\0mysql_native_password\0"
_ROWS = b"".join([b"\x04\0\0%c\x03row" % number for number in range(4, 256)])


def _packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


_SQL: tuple[Mode, ...] = (
    _without_end(b"\xff\xff\xff\0\x0a"),
    _slowly(b"\x50\0\0\0\x0a"),
    _without_end(_packet(0, _SQL_GREETING) + b"\xff\xff\xff\x02"),
    lambda _: [_packet(0, _SQL_GREETING.replace(b"8.0.11", MARK.encode()))],
    lambda _: [_packet(0, _SQL_GREETING) + _packet(2, b"\xfe" + MARK.encode() + b"\0" + b"1" * 20 + b"\0")],
    lambda _: [_packet(0, b"\xff\x15\x04#28000\x1b[2J\xff\xfe")],
    _without_end(_packet(0, _SQL_GREETING) + _packet(2, b"\0\0\0\x02\0\0\0") + _packet(1, b"\x01"), _ROWS),
    lambda _: [_packet(0, _SQL_GREETING) + _packet(2, b"\0\0\0\x02\0\0\0") + _packet(1, b"\xfb/etc/passwd")],
)


_SPEAKERS: Mapping[str, Mode] = {**MODES, **{str(number): mode for number, mode in enumerate(_SQL)}}


def _speak(channel: socket.socket) -> None:
    """Answer on each connection that arrives through `channel`, until its other end is closed."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(channel, 4, 1, socket.MSG_WAITALL)
        if not head:
            return
        said = channel.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL)
        connection = socket.socket(fileno=descriptors[0])
        asked = msgspec.msgpack.decode(said, type=Asked)
        threading.Thread(target=_answer, args=(connection, asked), daemon=True).start()


def _answer(connection: socket.socket, asked: Asked) -> None:
    with connection, contextlib.suppress(OSError):
        for piece in _SPEAKERS[asked.mode](asked):
            connection.sendall(piece)


class _Speaker:
    """The process that speaks for hostile servers."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            program = (sys.executable, "-m", __name__, str(theirs.fileno()))
            root = Path(__file__).parents[2]
            self._process = subprocess.Popen(program, cwd=root, pass_fds=[theirs.fileno()])
        self._lock = threading.Lock()

    def answer(self, connection: socket.socket, asked: Asked) -> None:
        """Let the process answer on a connection, which the caller closes on its own side."""
        body = msgspec.msgpack.encode(asked)
        with self._lock:
            socket.send_fds(self._channel, [len(body).to_bytes(4, "little")], [connection.fileno()])
            self._channel.sendall(body)

    def close(self) -> None:
        """End the process, and all connections with it."""
        self._channel.close()
        self._process.wait()


class HostileNetwork:
    """An HTTP proxy on a free port of 127.0.0.1: the operator's only way to servers. It records every host asked for.

    Servers answer honestly, from the sandbox, until `turn` makes those hostile whose namespaces have a mode; SQL ports
    are hostile from the beginning.
    """

    def __init__(self, honest: Transport, modes: Mapping[str, str], honest_pd: Collection[str] = ()) -> None:
        """`modes` has the mode of each hostile namespace.

        In the namespaces of `honest_pd`, PD stays honest, so that the operator asks the other servers.
        """
        self.honest = honest
        self.modes = modes
        self.honest_pd = honest_pd
        self.hosts: set[str] = set()
        self.ports: set[int] = set()
        """The hostile servers that got a request."""
        self.answered: dict[str, int] = dict.fromkeys(modes, 0)
        self.spoke_sql: dict[str, int] = dict.fromkeys(modes, 0)
        self.is_hostile = False
        self.canary = _Canary()
        self.speaker = _Speaker()
        self._sql = dict(zip(modes, itertools.cycle(map(str, range(len(_SQL)))), strict=False))
        self._server = _Proxy(("127.0.0.1", 0), _Connection)
        self._server.network = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="hostile")

    @property
    def url(self) -> str:
        """For HTTP_PROXY."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serve while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self.speaker.close()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self.canary.close()

    def turn(self) -> None:
        """From now on, servers in namespaces with a mode are hostile."""
        self.is_hostile = True

    def namespace_of(self, host: str) -> str:
        """The namespace with a mode whose server a host is; empty for any other."""
        return next((part for part in host.split(".") if part in self.modes), "")

    def hostile_namespace(self, host: str, port: int) -> str:
        """The namespace of a server that has turned hostile; empty for any other."""
        namespace = self.namespace_of(host) if self.is_hostile else ""
        if not namespace or (port == _PD_PORT and namespace in self.honest_pd):
            return ""
        self.ports.add(port)
        self.answered[namespace] += 1
        return namespace

    def answer(self, connection: socket.socket, namespace: str, url: str, honest: bytes) -> None:
        """Let a hostile server answer on a connection."""
        self.speaker.answer(connection, Asked(self.modes[namespace], url, honest, self.canary.port))

    def answer_sql(self, connection: socket.socket, namespace: str) -> None:
        """Let the SQL port of a hostile TiDB answer on a connection."""
        self.speaker.answer(connection, Asked(self._sql[namespace], "", b"", self.canary.port))


class _Canary:
    """A listener that no cluster has, which counts its callers."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]

    def was_called(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            self._listener.accept()[0].close()
            return True
        return False

    def close(self) -> None:
        self._listener.close()


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    network: HostileNetwork

    def shutdown_request(self, request: Any) -> None:
        """Close this side only: a connection of a hostile server stays open in the other process."""
        self.close_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: the operator closes the connection during most answers."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Proxy
    _tunnel = ""

    def do_CONNECT(self) -> None:
        network, host = self.server.network, self.path.rpartition(":")[0]
        network.hosts.add(host)
        self.close_connection = True
        self.send_response_only(200, "Connection Established")
        self.end_headers()
        if namespace := network.namespace_of(host):
            network.spoke_sql[namespace] += 1
            network.answer_sql(self.connection, namespace)

    def _forward(self) -> None:
        network = self.server.network
        url = urlsplit(self.path)
        host = url.hostname or ""
        network.hosts.add(host)
        length = int(self.headers.get("content-length", "0"))
        request = Request(self.command, self.path, dict(self.headers.items()), self.rfile.read(length) or None)
        namespace = network.hostile_namespace(host, url.port or 80)
        if not namespace:
            self._answer_honestly(request)
            return
        self.close_connection = True
        honest = _honest(network.honest, request)
        network.answer(self.connection, namespace, self.path, honest.body if honest else b"")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _forward  # noqa: N815  (http.server's names)

    def _answer_honestly(self, request: Request) -> None:
        answer = _honest(self.server.network.honest, request)
        if answer is None:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name the base class gives it)
        """The network records what matters."""


def _honest(transport: Transport, request: Request) -> Response | None:
    """The sandbox's answer; a hostile server reads it as well, so that its lies resemble it."""
    try:
        return transport.request(replace(request, timeout=20.0))
    except TransportError:
        return None


if __name__ == "__main__":
    _speak(socket.socket(fileno=int(sys.argv[1])))
