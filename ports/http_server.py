"""A small HTTP server: it receives a `Request` and sends a `Response` or a stream of bytes."""

import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BufferedReader, BytesIO
from pathlib import Path
from typing import Any, ClassVar, Protocol

import structlog

from ports.deadlines import DeadlineTlsSocket, arm, with_deadline
from ports.product import USER_AGENT
from ports.transport import ByteStream, Request, Response

_log = structlog.get_logger(__name__)

_CLIENT_TIMEOUT = 10.0
"""Seconds for a client to send a whole request, including the handshake, and again to receive the answer."""

_LONGEST_BODY = 1 << 20
"""The default maximum size of a request body in bytes."""

_LONGEST_HEAD = 1 << 15
"""The maximum size of request line and headers in bytes."""

_MOST_CONNECTIONS = 100
"""The maximum number of open connections, each with a thread. A further one ends the oldest, so new clients get
through.
"""

_MOST_REFUSED = 1000
"""Hosts whose refusal is logged, one line each."""

_REFUSED: Mapping[str, str] = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and this server demands one",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not valid by the authority of this server's clients",
}
"""Why a client is refused, by OpenSSL's name of the error."""

_BACKLOG = 1024
"""Connections that the kernel queues until the server accepts them."""

_POLL = 0.1
"""Seconds within which a server notices a stop."""

_GRACE = 2.0
"""Seconds for which a stop waits for the threads of connections."""

_DIGITS = 20
"""The maximum number of digits in a Content-Length."""

_PIECE = 1 << 16
"""The number of bytes of a body to read in one call."""

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
    """Raised when a server cannot start; the message names the port or the file, and the cause."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause


class TlsSource(Protocol):
    """The TLS of a server's connections."""

    def context(self) -> ssl.SSLContext:
        """The TLS context for the next connection."""


Answer = Callable[["Conversation", Request], None]
"""Answers one request of a conversation."""


def read_body(reader: BufferedIOBase, length: int) -> bytes:
    """A request body of `length` bytes. Raises ConnectionResetError if it is truncated."""
    body = reader.read(length)
    if len(body) < length:
        raise ConnectionResetError(f"the client hung up after {len(body)} of {length} bytes")
    return body


class _TooLong(Exception):
    """Raised for a request whose head is too long, or whose body exceeds the memory for bodies."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Bodies:
    """The memory for all request bodies that are being received or answered: a maximum for all clients together."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._left = most

    def take(self, count: int) -> None:
        """Reserve memory. Raises _TooLong if not enough is free."""
        with self._lock:
            if count > self._left:
                raise _TooLong(503, "the server is busy with other requests; try again")
            self._left -= count

    def give_back(self, count: int) -> None:
        with self._lock:
            self._left += count


class _Reader(BufferedReader):
    """Reads requests, with a maximum size for each head."""

    left = _LONGEST_HEAD

    def readline(self, size: int | None = -1, /) -> bytes:
        """Like `BufferedReader.readline`. Raises _TooLong."""
        limit = self.left + 1
        line = super().readline(limit if size is None or size < 0 else min(size, limit))
        self.left -= len(line)
        if self.left < 0:
            raise _TooLong(431, f"the request line and the headers have more than {_LONGEST_HEAD} bytes")
        return line


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        answer: Answer,
        tls: TlsSource | None,
        *,
        longest_body: int,
        patience: float,
    ) -> None:
        self.tls = tls
        self.patience = patience
        self.name = name
        self.answer = answer
        self.longest_body = longest_body
        self.bodies = _Bodies(max(longest_body, _MOST_CONNECTIONS * _LONGEST_BODY // 4))
        self._open: dict[socket.socket, None] = {}
        """Connections that may stay, the oldest first."""
        self._evicted: set[socket.socket] = set()
        """Connections that made room for others and whose threads still run."""
        self._ended = threading.Condition()
        self._refused: set[str] = set()
        everywhere = not address[0] and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if everywhere or ":" in address[0] else socket.AF_INET
        super().__init__(address, Conversation)

    def server_bind(self) -> None:
        """Bind for IPv4 and IPv6. The base class would also look up a host name, which is not needed."""
        if self.address_family == socket.AF_INET6:
            only_v6 = 1 if self.server_address[0] else 0
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_v6)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.name, self.server_address[1]

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection, under the current certificate.

        The handshake happens in the connection's own thread, so a silent client does not block others. Raises OSError
        for a client that has disconnected already: `ssl` would leave its socket open.
        """
        connection, client = super().get_request()
        limited = with_deadline(connection)
        if self.tls is None:
            return limited, client
        try:
            limited.getpeername()
        except OSError as error:
            _log.debug("connection broken", server=self.name, client=str(client), cause=str(error))
            limited.close()
            raise
        context = self.tls.context()
        context.sslsocket_class = DeadlineTlsSocket
        return context.wrap_socket(limited, server_side=True, do_handshake_on_connect=False), client

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own; close the oldest connection if there are too many."""
        with self._ended:
            self._open[request] = None
            if len(self._open) > _MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                self._evicted.add(oldest)
                _hang_up(oldest)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As the base class, but named threads."""
        threading.current_thread().name = f"{self.name}-request"
        super().process_request_thread(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, which is the last act of its thread."""
        try:
            super().shutdown_request(request)
        finally:
            with self._ended:
                self._open.pop(request, None)
                self._evicted.discard(request)
                self._ended.notify_all()

    def server_close(self) -> None:
        """Close the listener and all connections, and wait for their threads.

        A thread that outlived the server could write its last log line while the interpreter shuts down, which is
        fatal to the process. A handler that blocks on anything but its client is left running.
        """
        super().server_close()
        with self._ended:
            for connection in self._open:
                _hang_up(connection)
            self._ended.wait_for(lambda: not self._open and not self._evicted, _GRACE)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  (the base class's shape)
        """Log a client that disconnects at level debug, one that lacks a certificate once, other errors as defects."""
        error = sys.exception()
        why = _REFUSED.get(error.reason) if isinstance(error, ssl.SSLError) else None
        if why and self._is_first_refusal_of(client_address):
            _log.warning("client refused", server=self.name, client=str(client_address), reason=why)
        elif isinstance(error, OSError):
            _log.debug("connection broken", server=self.name, client=str(client_address), cause=str(error))
        else:
            _log.error("request failed", server=self.name, client=str(client_address), exc_info=error)

    def _is_first_refusal_of(self, client_address: Any) -> bool:
        """True if this host is refused for the first time: one that tries again and again is logged once."""
        host = client_address[0]
        with self._ended:
            if host in self._refused or len(self._refused) >= _MOST_REFUSED:
                return False
            self._refused.add(host)
            return True


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        # as a plain `socket`, because a TLS socket would wait for the client's close_notify
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class Conversation(BaseHTTPRequestHandler):
    """The requests of one client over one connection."""

    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = USER_AGENT
    sys_version = ""
    disable_nagle_algorithm: ClassVar[bool] = True
    rfile: _Reader

    def setup(self) -> None:
        """Install a reader with a maximum for heads."""
        super().setup()
        self.connection.settimeout(self.server.patience)
        self.rfile.close()
        # `makefile` counts the open users of a connection
        self.rfile = _Reader(self.connection.makefile("rb", buffering=0))

    def handle_one_request(self) -> None:
        """Answer the next request, which must be complete before its deadline."""
        self.rfile.left = _LONGEST_HEAD
        arm(self.connection, self.server.patience)
        try:
            super().handle_one_request()
        except _TooLong as error:
            self.close_connection = True
            self.command, self.request_version = "", self.protocol_version
            self._refuse(error)

    def send_response_of(self, response: Response) -> None:
        """Send a whole answer."""
        self._start(response.status, dict(response.headers) | {"content-length": str(len(response.body))})
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def send_stream(self, stream: ByteStream) -> None:
        """Send an answer piece by piece; without a known length, the connection's end marks the end of the answer."""
        headers = end_to_end(stream.headers)
        if "content-length" not in headers:
            self.close_connection = True
            headers["connection"] = "close"
        self._start(stream.status, headers)
        for chunk in stream:
            self.wfile.write(chunk)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name the base class gives it)
        """Log nothing: the app logs what matters."""

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _serve(self) -> None:
        length = self.headers.get("content-length", "0")
        is_number = len(length) < _DIGITS and length.isascii() and length.isdecimal()
        if "transfer-encoding" in self.headers or not is_number or int(length) > self.server.longest_body:
            self._refuse(_TooLong(413, "the request body is too large"))
            return
        held = 0
        body = BytesIO()
        try:
            while held < int(length):
                count = min(_PIECE, int(length) - held)
                self.server.bodies.take(count)
                held += count
                body.write(read_body(self.rfile, count))
            self._answer(body.getvalue() or None)
        except _TooLong as error:
            self._refuse(error)
        finally:
            self.server.bodies.give_back(held)

    def _answer(self, body: bytes | None) -> None:
        self._begin_answer()
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body, client=_plain(self.client_address[0]))
        self.server.answer(self, request)

    def _begin_answer(self) -> None:
        """Give each further write its own timeout."""
        arm(self.connection, None)
        self.connection.settimeout(self.server.patience)

    def _refuse(self, error: _TooLong) -> None:
        self.close_connection = True
        self._begin_answer()
        self.send_response_of(Response(error.status, {"connection": "close"}, f"{error}\n".encode()))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _serve  # noqa: N815  (http.server's names)


def _plain(address: str) -> str:
    """An address in its IPv4 form, if a dual-stack socket shows it as IPv6."""
    return address.removeprefix("::ffff:")


class Server:
    """A server with a listening thread and one thread per connection."""

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        answer: Answer,
        tls: TlsSource | None = None,
        *,
        longest_body: int = _LONGEST_BODY,
        patience: float = _CLIENT_TIMEOUT,
    ) -> None:
        """Listen immediately; port 0 means any free port. Raises ListenError.

        `longest_body` is in bytes. `patience` is the seconds for a client to send a request, and to receive an answer.
        """
        try:
            self._server = _Server(name, address, answer, tls, longest_body=longest_body, patience=patience)
        except OSError as error:
            cause = error.strerror or str(error)
            raise ListenError(f"{name}: cannot listen on port {address[1]}: {cause}", cause) from error
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,), name=f"{name}-server")

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        port: int = self._server.server_address[1]
        return port

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, close open connections, and wait for their threads."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_CLIENT_TIMEOUT)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve within the block."""
        self.start()
        try:
            yield
        finally:
            self.stop()


def answer_with(handle: Callable[[Request], Response]) -> Answer:
    """An `Answer` for an app that returns whole responses."""

    def answer(handler: Conversation, request: Request) -> None:
        handler.send_response_of(handle(request))

    return answer


def end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a proxy passes on."""
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    return {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_HOP | named}


class ServerTls:
    """A server's certificate, reloaded when its files change, so that a renewal needs no restart.

    If the files cannot be used, e.g. while only one of certificate and key has been replaced, the previous pair stays.
    """

    def __init__(self, certificate: Path, key: Path, clients: Path | None = None) -> None:
        """With `clients`, a CA, clients must present a certificate from it. Raises ListenError."""
        self._files = certificate, key, clients
        self._seen = self._state()
        self._context = _context(*self._files)

    def context(self) -> ssl.SSLContext:
        """The TLS context for the next connection."""
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
    """A server's TLS that demands client certificates from the CA in `directory` (objects.md 9.4). Raises
    ListenError.
    """
    return ServerTls(directory / "tls.crt", directory / "tls.key", directory / "ca.crt")


def _state_of(file: Path) -> tuple[int, int, int] | None:
    """The identity of a file's current content; None if the file does not exist."""
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
