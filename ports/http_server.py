"""A small HTTP server: what comes in is a `Request`, what goes out a `Response`, or a stream of bytes."""

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from typing import ClassVar

import structlog

from ports.transport import ByteStream, Request, Response

_log = structlog.get_logger(__name__)

_CLIENT_TIMEOUT = 10.0
"""Seconds that a client may keep us waiting: for its handshake, its request, or for taking the answer."""

_LONGEST_BODY = 1 << 20
"""Bytes of a request, where nobody says how many it may have."""

_OF_ONE_HOP = frozenset(
    {
        "connection",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class ListenError(Exception):
    """Raised when a server cannot start; the message names the port, or the file, and the cause."""


Answer = Callable[["Conversation", Request], None]
"""Answers one request by what the conversation offers."""


def whole_body(reader: BufferedIOBase, length: int) -> bytes:
    """A request's body of `length` bytes; a part of one must not pass for it. Raises ConnectionResetError."""
    body = reader.read(length)
    if len(body) < length:
        raise ConnectionResetError(f"the client hung up after {len(body)} of {length} bytes")
    return body


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, name: str, address: tuple[str, int], answer: Answer, longest_body: int, tls: "ServerTls | None"
    ) -> None:
        self.tls = tls
        self.name = name
        self.answer = answer
        self.longest_body = longest_body
        everywhere = not address[0] and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if everywhere else socket.AF_INET
        super().__init__(address, Conversation)

    def server_bind(self) -> None:
        """Bind, for IPv4 and IPv6 alike; the base class would look up a name that nobody needs."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.name, self.server_address[1]

    def get_request(self) -> tuple[socket.socket, object]:
        """A connection with the certificate of today.

        The handshake is its thread's affair: a silent client must not block the others.
        """
        connection, client = super().get_request()
        if self.tls is None:
            return connection, client
        context = self.tls.context()
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), client

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  (the base class's shape)
        """A client that went away in the middle is no event."""
        _log.debug("connection broken", client=str(client_address), exc_info=True)


class Conversation(BaseHTTPRequestHandler):
    """What a client asks over one connection."""

    server: _Server
    timeout = _CLIENT_TIMEOUT
    protocol_version = "HTTP/1.1"
    server_version = "tidb-operator"
    sys_version = ""
    disable_nagle_algorithm: ClassVar[bool] = True

    def send_response_of(self, response: Response) -> None:
        """Send a whole answer."""
        self._start(response.status, dict(response.headers) | {"content-length": str(len(response.body))})
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def send_stream(self, stream: ByteStream) -> None:
        """Send an answer as it comes; its end is the connection's when its length is not known before."""
        headers = end_to_end(stream.headers)
        if "content-length" not in headers:
            self.close_connection = True
            headers["connection"] = "close"
        self._start(stream.status, headers)
        for chunk in stream:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name the base class gives it)
        """The app logs what matters."""

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _serve(self) -> None:
        length = self.headers.get("content-length", "0")
        if "transfer-encoding" in self.headers or not length.isdecimal() or int(length) > self.server.longest_body:
            self.close_connection = True
            self.send_response_of(Response(413, {"connection": "close"}, b"the request body is too large\n"))
            return
        body = whole_body(self.rfile, int(length)) or None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.answer(self, Request(self.command, self.path, headers, body))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve  # noqa: N815  (http.server's names)


class Server:
    """One server on a thread of its own, one more thread per connection."""

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        answer: Answer,
        tls: "ServerTls | None" = None,
        *,
        longest_body: int = _LONGEST_BODY,
    ) -> None:
        """Listen at once; port 0 is any free one. `longest_body` is in bytes. Raises ListenError."""
        try:
            self._server = _Server(name, address, answer, longest_body, tls)
        except OSError as error:
            raise ListenError(f"{name}: cannot listen on port {address[1]}: {error.strerror or error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        port: int = self._server.server_address[1]
        return port

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(_CLIENT_TIMEOUT)


def answer_with(handle: Callable[[Request], Response]) -> Answer:
    """Answers of an app that knows each of them as a whole."""

    def answer(handler: Conversation, request: Request) -> None:
        handler.send_response_of(handle(request))

    return answer


def end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a proxy passes on."""
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    return {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_HOP | named}


class ServerTls:
    """The certificate of a server, read again when its files change: who renews it restarts nobody.

    What cannot be used, such as a key without its certificate while both are being replaced, leaves the one before.
    """

    def __init__(self, certificate: Path, key: Path, clients: Path | None = None) -> None:
        """With `clients`, a CA, clients must show a certificate of it. Raises ListenError."""
        self._files = certificate, key, clients
        self._seen = self._state()
        self._context = _context(*self._files)

    def context(self) -> ssl.SSLContext:
        """What the next connection gets."""
        state = self._state()
        if state != self._seen:
            self._seen = state
            try:
                self._context = _context(*self._files)
                _log.info("certificate read again", file=str(self._files[0]))
            except ListenError as error:
                _log.warning("the certificate before stays in use", cause=str(error))
        return self._context

    def _state(self) -> list[tuple[int, int, int] | None]:
        return [_state_of(file) for file in self._files if file is not None]


def mutual_tls(directory: Path) -> ServerTls:
    """It demands client certificates of the CA in `directory` (objects.md 9.4). Raises ListenError."""
    return ServerTls(directory / "tls.crt", directory / "tls.key", directory / "ca.crt")


def _state_of(file: Path) -> tuple[int, int, int] | None:
    """What tells a file from the one before; None while there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _context(certificate: Path, key: Path, clients: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(str(file) for file in (certificate, key, clients) if file is not None)
        raise ListenError(f"cannot use {files} for TLS: {error}") from error
    return context
