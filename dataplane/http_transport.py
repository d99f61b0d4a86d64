"""The data plane over HTTP: `ports.transport.Transport` on `requests` (dataplane-apis.md 2).

One transport is one TLS identity, that is, one cluster or all clusters without TLS. The environment's proxies are
honoured as `ports.proxies` decides, so that one forward proxy reaches a whole simulated world.

Servers are not trusted: each answer, headers and body, has a deadline and a size, an encoded body is refused, and no
redirect is followed (docs/security.md).
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import urldefragauth
from urllib3.exceptions import HTTPError, NewConnectionError, ReadTimeoutError

from dataplane.tls import TlsMaterial, client_context
from ports.deadlines import (
    DeadlineConnection,
    DeadlineTlsConnection,
    DeadlineTlsSocket,
    HeadTooLong,
    limit_silence,
)
from ports.proxies import proxy_for
from ports.tls import verifying_context
from ports.transport import (
    AnswerRefused,
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

_LONGEST_HEAD = 1 << 16
"""Bytes of all headers of an answer, those of interim answers included. `http.client` would read 100 lines of 64 KiB
each, and any number of interim answers."""

_NOT_ENCODED = ("", "identity")
_POOL_SIZE = 32
_KEPT = 1024
"""Requests of a transport that are kept prepared, and URLs that are kept parsed."""
_CHUNK = 1 << 16


class HttpTransport:
    """Sends requests as one TLS identity. Safe for use by many threads."""

    def __init__(self, environ: Mapping[str, str], tls: TlsMaterial | None = None) -> None:
        """Prepare, without connecting. Without `tls`, https peers are checked against the system's authorities.

        Raises BadTlsMaterial.
        """
        self._preparing = _Preparing(environ)
        self._session = requests.Session()
        self._session.trust_env = False
        context = client_context(tls) if tls else verifying_context()
        context.sslsocket_class = DeadlineTlsSocket
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _Adapter(context))

    def request(self, request: Request) -> Response:
        """Send and read the whole answer within `request.timeout`; a redirect is an answer. Raises TransportError."""
        with _typed_errors(request):
            answer = self._send(request, read=request.timeout)
            with answer:
                headers = _lower(answer.headers)
                return Response(answer.status_code, headers, _body(answer, headers, request))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return once the headers are here; redirects and encodings are the reader's.

        Raises TransportError.
        """
        with _typed_errors(request):
            answer = self._send(request, read=request.timeout)
            return _HttpStream(answer, request, idle_timeout)

    def close(self) -> None:
        """Release idle connections. Idempotent."""
        self._session.close()

    def _send(self, request: Request, read: float) -> requests.Response:
        prepared, proxy = self._preparing.of(request)
        if proxy and not proxy.startswith(("http://", "https://")):
            scheme, _, _ = proxy.partition("://")
            what = f"HTTP_PROXY or ALL_PROXY: only http:// and https:// proxies are supported, not {scheme}://"
            raise ConnectionRefused(request.method, request.url, f"{what}; name another one, or the host in NO_PROXY")
        timeout = urllib3.Timeout(connect=min(_CONNECT_TIMEOUT, request.timeout), read=read, total=request.timeout)
        options: dict[str, Any] = {"timeout": timeout, "stream": True}
        options["proxies"] = {"http": proxy, "https": proxy} if proxy else {}
        # what a session adds, cookies and settings of its own, costs almost as much as the request itself
        answer = self._session.get_adapter(request.url).send(prepared, **options)
        if answer.status_code < 200:
            # the answer proper is still to come, and must not be taken for that of the next request
            answer.close()
            raise ConnectionLost(request.method, request.url, f"the server answered {answer.status_code} first")
        return answer


class _Preparing:
    """Makes of a request what `requests` sends, and finds its proxy. Questions are kept, as reconciles repeat them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._question = lru_cache(_KEPT)(self._prepare)

    def of(self, request: Request) -> tuple[requests.PreparedRequest, str | None]:
        """Raises requests.RequestException."""
        headers = tuple(request.headers.items())
        if request.body is None:
            return self._question(request.method, request.url, headers)
        return self._prepare(request.method, request.url, headers, request.body)

    def _prepare(
        self, method: str, url: str, headers: tuple[tuple[str, str], ...], body: bytes | None = None
    ) -> tuple[requests.PreparedRequest, str | None]:
        prepared = requests.PreparedRequest()
        own = {"user-agent": USER_AGENT, "accept-encoding": "identity"}
        prepared.prepare(method, url, own | dict(headers), data=body)
        return prepared, proxy_for(url, self._environ)


class _Adapter(HTTPAdapter):
    """Gives `requests` our TLS context, and connections that keep deadlines."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_connections=_POOL_SIZE, pool_maxsize=_POOL_SIZE)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **(options | self._tls_options()))
        _keep_deadlines(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **(options | self._tls_options()))
        _keep_deadlines(manager)
        return manager

    def _tls_options(self) -> dict[str, Any]:
        # urllib3 compares names itself where the context does not
        names: dict[str, Any] = {} if self._context.check_hostname else {"assert_hostname": False}
        return {"ssl_context": self._context} | names

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave the context alone: `requests` would add the public authorities to the cluster's own."""

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {}

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        """Where to send a request; `requests` parses its URL and the proxy's anew for each."""
        proxy = (proxies or {}).get("http")
        manager = self.proxy_manager.get(proxy) if proxy else self.poolmanager
        if manager is None:
            # the first through this proxy
            return super().get_connection_with_tls_context(request, verify, proxies, cert)
        return manager.connection_from_host(**_host_of(request.url))

    def request_url(self, request: Any, proxies: Any) -> str:
        return _target(request.url, is_proxied=bool(proxies))


@lru_cache(_KEPT)
def _host_of(url: str) -> Mapping[str, Any]:
    parts = urlsplit(url)
    return {"scheme": parts.scheme, "host": parts.hostname, "port": parts.port}


@lru_cache(_KEPT)
def _target(url: str, *, is_proxied: bool) -> str:
    """What the first line of a request names: all of the URL where a proxy is to read it, else the path."""
    if is_proxied and not url.startswith("https:"):
        return str(urldefragauth(url))
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class _Connection(DeadlineConnection):
    longest_head = _LONGEST_HEAD


class _TlsConnection(DeadlineTlsConnection):
    longest_head = _LONGEST_HEAD


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def _keep_deadlines(manager: Any) -> None:
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}


class _HttpStream:
    """A body as it arrives, undecoded."""

    def __init__(self, answer: requests.Response, request: Request, idle_timeout: float) -> None:
        self._answer = answer
        self._request = request
        self._headers = _lower(answer.headers)
        self._wire: socket.socket | None = getattr(answer.raw.connection, "reading", None)
        if self._wire is not None and answer.status_code == 200:
            limit_silence(self._wire, idle_timeout)

    @property
    def status(self) -> int:
        return self._answer.status_code

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

    def _next(self) -> bytes:
        with _typed_errors(self._request):
            chunk: bytes = self._answer.raw.read1(_CHUNK, decode_content=False)
            return chunk


def _body(answer: requests.Response, headers: Mapping[str, str], request: Request) -> bytes:
    """The body, read up to its limit. Raises AnswerRefused, what `requests` and urllib3 raise."""
    if headers.get("content-encoding", "").strip().lower() not in _NOT_ENCODED:
        raise AnswerRefused(request.method, request.url, "the server encoded its answer, which was not asked for")
    body = bytearray()
    try:
        while piece := answer.raw.read(_CHUNK, decode_content=False):
            body += piece
            if len(body) > request.longest_answer:
                what = f"the server sent more than the {request.longest_answer} bytes that its answer may have"
                raise AnswerRefused(request.method, request.url, what)
        return bytes(body)
    finally:
        # an error keeps the frames that it passed, and may be kept itself
        body.clear()


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextlib.contextmanager
def _typed_errors(request: Request) -> Iterator[None]:
    try:
        yield
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        kind, cause = _classify(error, request.timeout)
        raise kind(request.method, request.url, cause) from error


_NOT_SENT = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidHeader,
)


def _classify(error: Exception, timeout: float) -> tuple[type[TransportError], str]:
    root = _root(error)
    if isinstance(error, requests.exceptions.SSLError) or isinstance(root, ssl.SSLError):
        return TlsError, str(root)
    if isinstance(error, requests.Timeout) or isinstance(root, ReadTimeoutError | TimeoutError):
        return RequestTimeout, f"no complete answer within {timeout:g} s"
    if isinstance(root, HeadTooLong):
        return AnswerRefused, f"the server sent more than {_LONGEST_HEAD} bytes of headers"
    if isinstance(root, NewConnectionError):
        return ConnectionRefused, _without_repr(root)
    if isinstance(error, _NOT_SENT):
        return ConnectionRefused, str(error)
    # errors that are not the system's quote what the server sent
    is_quoting = not isinstance(root, OSError)
    return ConnectionLost, f"the server does not speak HTTP ({type(root).__name__})" if is_quoting else str(root)


def _root(error: Exception) -> BaseException:
    """What happened, below the layers that report it."""
    current: BaseException = error
    while True:
        named = getattr(current, "reason", None) or getattr(current, "original_error", None)
        inner = next((each for each in (named, *current.args) if isinstance(each, BaseException)), None)
        if inner is None:
            return current
        current = inner


def _without_repr(error: NewConnectionError) -> str:
    """The message without the connection's address in memory."""
    return str(error).partition(": ")[2] or str(error)
