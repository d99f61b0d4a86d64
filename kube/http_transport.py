"""The Kubernetes API over HTTP: `ports.transport.Transport` on urllib3 (informers-workqueue.md 9, 24 PY-4, PY-5, 25.4).

A pool serves short requests. Each watch has its own connection, which another thread can end at any time.
`kube.retrying` retries, and `kube.client` decodes.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping

import urllib3
from urllib3 import HTTPHeaderDict
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.response import BaseHTTPResponse

from kube.config import ClusterConfig, ConfigError
from kube.connections import OpenConnections, shut_down
from kube.pools import Pools
from ports.clock import Clock
from ports.deadlines import arm, limit_silence
from ports.lazy_log import get_logger
from ports.proxies import proxy_for
from ports.transport import (
    ByteStream,
    ConnectionLost,
    ConnectionRefused,
    CredentialMissing,
    Request,
    RequestTimeout,
    Response,
    TlsError,
    TransportClosed,
    TransportError,
)

_log = get_logger(__name__)

_CONNECT_TIMEOUT = 10.0
"""Seconds to connect, for TCP and TLS (TH-12)."""

_CHUNK = 1 << 16

_LONGEST_BODY = 1 << 26
"""The maximum size of an answer in memory in bytes; an object has at most a few million."""


class HttpTransport:
    """Sends requests to one API server under one identity. Thread-safe."""

    def __init__(self, config: ClusterConfig, environ: Mapping[str, str], clock: Clock) -> None:
        """Prepare, without connecting. `environ` names the proxy if the kubeconfig does not.

        Raises ConfigError if certificates or keys cannot be used.
        """
        self._config = config
        self._clock = clock
        self._connections = OpenConnections()
        proxy = config.proxy_url or proxy_for(config.server, environ)
        self._pools = Pools(config, proxy, self._connections, clock)
        self._warnings = _Warnings()

    def request(self, request: Request) -> Response:
        """Send and read the whole answer within `request.timeout`; decompresses gzip. Raises TransportError."""
        headers = {"accept-encoding": "gzip", **request.headers}
        answer = self._send(self._pools.shared(), request, headers)
        pieces: list[bytes] = []
        receive = request.receiver() if request.receiver and answer.status == 200 else None
        try:
            size = self._stream_to(receive, answer, request) if receive else self._read(answer, request, pieces)
        except Exception:
            answer.close()
            raise
        body = b"".join(pieces)
        return Response(answer.status, _lower(answer), body, streamed=size)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return after the headers. Raises TransportError.

        The connection is neither shared nor reused, so ending it affects no other request (TH-17).
        """
        headers = {"accept-encoding": "identity", "connection": "close", **request.headers}
        pool = self._pools.single()
        answer = self._send(pool, request, headers)
        connected = self._connections.socket_of(answer.connection)
        return _HttpStream(answer, request, pool, connected, _Silence(connected, idle_timeout, self._clock))

    def close(self) -> None:
        """End all blocking network calls and refuse new requests. Idempotent."""
        self._connections.close()
        self._pools.clear()

    def _send(self, pool: urllib3.PoolManager, request: Request, headers: dict[str, str]) -> BaseHTTPResponse:
        if self._connections.closed:
            raise TransportClosed(request.method, request.url, "the transport is closed")
        started = self._clock.now()
        if authorization := self._authorization(request):
            headers["authorization"] = authorization
        whole = HTTPHeaderDict(headers)
        for name, value in self._config.impersonation:
            whole.add(name, value)
        try:
            answer = self._answer(pool, request, whole)
        except TlsError:
            self._pools.doubt()
            raise
        if answer.status == 401:
            self._config.credentials.rejected(started)
            self._pools.doubt()
        self._warnings.log(request, answer)
        return answer

    def _answer(self, pool: urllib3.PoolManager, request: Request, headers: HTTPHeaderDict) -> BaseHTTPResponse:
        with _typed_errors(request):
            answer = pool.urlopen(
                request.method,
                self._config.server + request.url,
                redirect=False,
                body=request.body,
                headers=headers,
                timeout=urllib3.Timeout(total=request.timeout, connect=min(_CONNECT_TIMEOUT, request.timeout)),
                retries=False,
                preload_content=False,
            )
        if answer.status < 200:
            # the final answer is still to arrive on this connection, and the next request must not read it as its own
            answer.close()
            raise ConnectionLost(request.method, request.url, f"the server answered {answer.status} first")
        return answer

    def _authorization(self, request: Request) -> str | None:
        try:
            return self._config.credentials.authorization()
        except ConfigError as error:
            raise CredentialMissing(request.method, request.url, str(error)) from error

    def _stream_to(self, receive: Callable[[bytes], None], answer: BaseHTTPResponse, request: Request) -> int:
        """Pass the body on as it arrives; return its size."""
        limit_silence(self._connections.socket_of(answer.connection), request.timeout)
        size = 0
        for chunk in _chunks(answer, request):
            size += len(chunk)
            receive(chunk)
        answer.release_conn()
        return size

    def _read(self, answer: BaseHTTPResponse, request: Request, pieces: list[bytes]) -> int:
        """Collect the body, of which nothing was streamed. Raises ConnectionLost."""
        size = 0
        for chunk in _chunks(answer, request):
            pieces.append(chunk)
            size += len(chunk)
            if size > _LONGEST_BODY:
                raise ConnectionLost(request.method, request.url, f"the answer is longer than {_LONGEST_BODY} bytes")
        answer.release_conn()
        return 0


class _Silence:
    """Limits the seconds of reading without the end of a line that is not blank (TH-13).

    A timeout per read would never end a watch whose peer, e.g. a proxy, sends one byte a minute.
    """

    def __init__(self, connected: socket.socket, limit: float, clock: Clock) -> None:
        self._connected = connected
        self._limit = limit
        self._clock = clock
        self._left = limit
        self._line_has_begun = False

    def read(self, read: Callable[[], bytes]) -> bytes:
        """Call `read` and return its result. Raises TimeoutError after the limit; time between reads does not count."""
        started = self._clock.now()
        arm(self._connected, self._left)
        chunk = read()
        self._left = self._limit if self._ends_line(chunk) else self._left - (self._clock.now() - started)
        return chunk

    def _ends_line(self, chunk: bytes) -> bool:
        head, newline, tail = chunk.rpartition(b"\n")
        ends = bool(newline) and (self._line_has_begun or _has_text(head))
        self._line_has_begun = _has_text(tail) or (self._line_has_begun and not newline)
        return ends


def _has_text(chunk: bytes) -> bool:
    return bool(chunk) and not chunk.isspace()


class _HttpStream:
    """The body of a watch as it arrives."""

    def __init__(
        self,
        answer: BaseHTTPResponse,
        request: Request,
        pool: urllib3.PoolManager,
        connected: socket.socket,
        silence: _Silence,
    ) -> None:
        self._answer = answer
        self._request = request
        self._pool = pool
        self._connected = connected
        self._silence = silence
        self._headers = _lower(answer)

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._next():
            yield chunk

    def _next(self) -> bytes:
        # read1 returns the bytes that have arrived; read would wait for a full buffer and delay events
        with _typed_errors(self._request):
            if self.status == 200:
                return self._silence.read(self._read)
            return self._read()

    def _read(self) -> bytes:
        return self._answer.read1(_CHUNK, decode_content=False)

    def abort(self) -> None:
        shut_down(self._connected)

    def close(self) -> None:
        self._answer.close()
        self._pool.clear()


class _Warnings:
    """`Warning` headers, each text logged once (REST-13)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def log(self, request: Request, answer: BaseHTTPResponse) -> None:
        for warning in answer.headers.getlist("warning"):
            code, _, rest = warning.partition(" ")
            text = rest.partition('"')[2].rpartition('"')[0]
            if code == "299" and self._is_new(text):
                _log.warning("the API server warns", text=text, method=request.method, path=request.url)

    def _is_new(self, text: str) -> bool:
        with self._lock:
            if text in self._seen:
                return False
            self._seen.add(text)
            return True


def _chunks(answer: BaseHTTPResponse, request: Request) -> Iterator[bytes]:
    """The decompressed body as it arrives. Types only the errors of reading, not the consumer's."""
    chunks = answer.stream(_CHUNK, decode_content=True)
    while True:
        with _typed_errors(request):
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def _lower(answer: BaseHTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.itermerged()}


@contextlib.contextmanager
def _typed_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except (HTTPError, OSError, ValueError) as error:
        raise _error_class(error)(request.method, request.url, _text(error)) from error


def _error_class(error: BaseException) -> type[TransportError]:
    if isinstance(error, ProxyError):
        inner = _error_class(error.original_error)
        # the proxy is unreachable or refused: no byte reached the server
        return inner if inner in (RequestTimeout, TlsError) else ConnectionRefused
    if isinstance(error, NewConnectionError):
        return ConnectionRefused
    if isinstance(error, (ConnectTimeoutError, ReadTimeoutError, TimeoutError)):
        return RequestTimeout
    if isinstance(error, SSLError):
        # an end in the middle of TLS is a lost connection
        cut = error.args and isinstance(error.args[0], (ssl.SSLEOFError, ssl.SSLZeroReturnError))
        return ConnectionLost if cut else TlsError
    return ConnectionLost


def _text(error: BaseException) -> str:
    """The text of the innermost cause, because urllib3's wrappers name their own objects."""
    if isinstance(error, ProxyError):
        return f"proxy: {_text(error.original_error)}"
    cause = error.__cause__ or (error.args[0] if error.args and isinstance(error.args[0], Exception) else None)
    return _text(cause) if isinstance(cause, Exception) else str(error) or type(error).__name__
