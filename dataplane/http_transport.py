"""The data plane over HTTP: `ports.transport.Transport` on urllib3 (dataplane-apis.md 2).

One transport is one TLS identity, that is, one cluster or all clusters without TLS. The environment's proxies are
honoured as `ports.proxies` decides, so that one forward proxy reaches a whole simulated world.
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3
from urllib3 import exceptions
from urllib3.response import BaseHTTPResponse

from dataplane.deadlines import DeadlineConnection, DeadlineTlsConnection, DeadlineTlsSocket
from dataplane.tls import TlsMaterial, client_context
from ports.proxies import proxy_for
from ports.transport import (
    ByteStream,
    ConnectionLost,
    ConnectionRefused,
    Request,
    RequestTimeout,
    Response,
    TlsError,
    TransportError,
)

_CONNECT_TIMEOUT = 3.0
"""Seconds for TCP; a name that resolves to a dead address must leave time for another try."""

USER_AGENT = "tidb-operator"

_ONCE = urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=3)
"""Nothing is sent twice, but where a redirect says so."""

_POOL_SIZE = 32
_CHUNK = 1 << 16


class HttpTransport:
    """Sends requests as one TLS identity. Safe for use by many threads."""

    def __init__(self, environ: Mapping[str, str], tls: TlsMaterial | None = None) -> None:
        """Prepare, without connecting. Without `tls`, https peers are checked against the system's authorities.

        Raises BadTlsMaterial.
        """
        self._environ = environ
        context = client_context(tls) if tls else ssl.create_default_context()
        context.sslsocket_class = DeadlineTlsSocket
        # urllib3 compares names itself where the context does not
        names: dict[str, Any] = {} if context.check_hostname else {"assert_hostname": False}
        self._options = {"num_pools": _POOL_SIZE, "maxsize": _POOL_SIZE, "ssl_context": context, **names}
        self._managers: dict[str, urllib3.PoolManager] = {}

    def request(self, request: Request) -> Response:
        """Send, follow redirects, and read the whole answer within `request.timeout`. Raises TransportError."""
        with _typed_errors(request):
            answer = self._send(request, follow=True)
            return Response(answer.status, _lower(answer.headers), answer.data)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return once the headers are here; redirects and encodings are the reader's.

        Raises TransportError.
        """
        with _typed_errors(request):
            return _HttpStream(self._send(request, follow=False), request, idle_timeout)

    def close(self) -> None:
        """Release idle connections. Idempotent."""
        for each in tuple(self._managers.values()):
            each.clear()

    def _send(self, request: Request, follow: bool) -> BaseHTTPResponse:
        return self._manager(proxy_for(request.url, self._environ)).urlopen(
            request.method,
            request.url,
            body=request.body,
            headers={"user-agent": USER_AGENT, **request.headers},
            redirect=follow,
            retries=_ONCE,
            timeout=urllib3.Timeout(
                connect=min(_CONNECT_TIMEOUT, request.timeout), read=request.timeout, total=request.timeout
            ),
            preload_content=follow,
        )

    def _manager(self, proxy: str | None) -> urllib3.PoolManager:
        """The connections through a proxy, or through none."""
        manager = self._managers.get(proxy or "")
        if manager is None:
            manager = urllib3.ProxyManager(proxy, **self._options) if proxy else urllib3.PoolManager(**self._options)
            manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
            manager = self._managers.setdefault(proxy or "", manager)
        return manager


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = DeadlineConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = DeadlineTlsConnection


class _HttpStream:
    """A body as it arrives, undecoded."""

    def __init__(self, answer: BaseHTTPResponse, request: Request, idle_timeout: float) -> None:
        self._answer = answer
        self._request = request
        self._headers = _lower(answer.headers)
        self._wire: socket.socket | None = getattr(answer.connection, "reading", None)
        if self._wire is not None:
            self._rest(self._wire, idle_timeout)

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._next():
            yield chunk

    def abort(self) -> None:
        if self._wire is not None:
            with contextlib.suppress(OSError):
                self._wire.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._answer.close()
        self._answer.release_conn()

    def _next(self) -> bytes:
        with _typed_errors(self._request):
            return self._answer.read1(_CHUNK, decode_content=False)

    @staticmethod
    def _rest(wire: socket.socket, idle_timeout: float) -> None:
        """From headers on, only silence counts."""
        if arm := getattr(wire, "arm", None):
            arm(None)
        # a short answer has been read, and its socket closed, already
        with contextlib.suppress(OSError):
            wire.settimeout(idle_timeout)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextlib.contextmanager
def _typed_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except (exceptions.HTTPError, OSError, ValueError) as error:
        kind, cause = _classify(error, request.timeout)
        raise kind(request.method, request.url, cause) from error


def _classify(error: Exception, timeout: float) -> tuple[type[TransportError], str]:
    layers = list(_layers(error))
    root = layers[-1]
    if any(isinstance(each, ssl.SSLError | exceptions.SSLError) for each in layers):
        return TlsError, str(root)
    if isinstance(root, exceptions.NewConnectionError):
        return ConnectionRefused, _without_repr(root)
    if any(isinstance(each, TimeoutError | exceptions.TimeoutError) for each in layers):
        return RequestTimeout, f"no complete answer within {timeout:g} s"
    # what cannot be a URL or a header is not sent
    return (ConnectionRefused if isinstance(error, ValueError) else ConnectionLost), str(root)


def _layers(error: Exception) -> Iterator[BaseException]:
    """What is reported, then what happened below."""
    inner: object = error
    while isinstance(inner, BaseException):
        yield inner
        inner = getattr(inner, "reason", None) or getattr(inner, "original_error", None) or next(iter(inner.args), None)


def _without_repr(error: exceptions.NewConnectionError) -> str:
    """The message without the connection's address in memory."""
    return str(error).partition(": ")[2] or str(error)
