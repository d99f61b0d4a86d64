"""The data plane over HTTP: `ports.transport.Transport` on `requests` (dataplane-apis.md 2).

One transport serves one TLS identity: one cluster, or all clusters without TLS. It uses the environment's proxies as
`ports.proxies` decides, so that one forward proxy reaches a whole simulated world.

Servers are not trusted: headers and body of each answer have a deadline and a maximum size, encoded bodies are
rejected, and redirects are not followed (docs/security.md).
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Self
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import urldefragauth
from urllib3.exceptions import HTTPError, NewConnectionError, ReadTimeoutError

from dataplane.answer_budget import SHORT, AnswerBudget, Room
from dataplane.tls import TlsMaterial, client_context
from ports.clock import SystemClock
from ports.deadlines import (
    DeadlineConnection,
    DeadlineTlsConnection,
    DeadlineTlsSocket,
    Dial,
    TooManyBytes,
    limit_silence,
    read_at_most,
)
from ports.proxies import PROXY_SCHEMES, is_socks, proxy_for
from ports.socks import through
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
"""Seconds for a TCP connection: if a name resolves to a dead address, there must be time for another try."""

USER_AGENT = "tidb-operator"

_LONGEST_HEAD = 1 << 16
"""The maximum size of all headers of an answer in bytes, including interim answers. `http.client` would accept 100
lines of 64 KiB and any number of interim answers.
"""

_FRAMING = 2
"""How many bytes a body in chunks may take on the wire for each byte that it may have, beside `_LONGEST_HEAD`.

Servers send chunks of kilobytes. `http.client` would read extensions of 64 KiB for chunks of one byte, and trailers
until the deadline, at the cost of a core.
"""

_NOT_ENCODED = ("", "identity")
_POOL_SIZE = 32
_KEPT = 1024
"""How many prepared requests, and parsed URLs, a transport keeps."""
_CHUNK = 1 << 16

_CLOCK = SystemClock()
"""Real sockets wait in real time."""


class HttpTransport:
    """Sends requests under one TLS identity. Thread-safe."""

    def __init__(
        self, environ: Mapping[str, str], tls: TlsMaterial | None = None, budget: AnswerBudget | None = None
    ) -> None:
        """Prepare, without connecting. Without `tls`, https peers are verified with the system's authorities.

        `budget` limits the long answers of all transports that share it. Raises BadTlsMaterial.
        """
        self._budget = budget or AnswerBudget()
        self._preparing = _Preparing(environ)
        self._session = requests.Session()
        self._session.trust_env = False
        context = client_context(tls) if tls else verifying_context()
        context.sslsocket_class = DeadlineTlsSocket
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _Adapter(context))

    def request(self, request: Request) -> Response:
        """Send and read the whole answer within `request.timeout`. A redirect is an answer. Raises TransportError."""
        with _typed_errors(request):
            answer = self._send(request, read=request.timeout)
            with answer:
                return _received(answer, request, self._budget)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return after the headers. The caller handles redirects and encodings.

        Raises TransportError.
        """
        with _typed_errors(request):
            answer = self._send(request, read=request.timeout)
            return _HttpStream(answer, request, idle_timeout)

    def close(self) -> None:
        """Close idle connections. Idempotent."""
        self._session.close()

    def _send(self, request: Request, read: float) -> requests.Response:
        prepared, proxy = self._preparing.of(request)
        if proxy and (scheme := proxy.partition("://")[0].lower()) not in PROXY_SCHEMES:
            what = f"HTTP_PROXY or ALL_PROXY: a proxy is http://, https:// or socks5://, not {scheme}://"
            raise ConnectionRefused(request.method, request.url, f"{what}; name another one, or the host in NO_PROXY")
        timeout = urllib3.Timeout(connect=min(_CONNECT_TIMEOUT, request.timeout), read=read, total=request.timeout)
        options: dict[str, Any] = {"timeout": timeout, "stream": True}
        options["proxies"] = {"http": proxy, "https": proxy} if proxy else {}
        # a session would add cookies and settings of its own, at almost the cost of the request itself
        answer = self._session.get_adapter(request.url).send(prepared, **options)
        if answer.status_code < 200:
            # the final answer is still to arrive on this connection, and the next request must not read it as its own
            answer.close()
            raise ConnectionLost(request.method, request.url, f"the server answered {answer.status_code} first")
        return answer


class _Preparing:
    """Prepares requests for `requests` and finds their proxies. Caches reads, because reconciles repeat them."""

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
    """Gives `requests` the operator's TLS context, and connections that keep deadlines."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(pool_connections=_POOL_SIZE, pool_maxsize=_POOL_SIZE)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **(options | self._tls_options()))
        _keep_deadlines(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
        if not is_socks(proxy):
            manager = super().proxy_manager_for(proxy, **(options | self._tls_options()))
            _keep_deadlines(manager)
            return manager
        if proxy not in self.proxy_manager:
            manager = urllib3.PoolManager(_POOL_SIZE, maxsize=_POOL_SIZE, **self._tls_options())
            _keep_deadlines(manager, through(proxy))
            self.proxy_manager[proxy] = manager
        return self.proxy_manager[proxy]

    def _tls_options(self) -> dict[str, Any]:
        # urllib3 compares names itself if the context does not
        names: dict[str, Any] = {} if self._context.check_hostname else {"assert_hostname": False}
        return {"ssl_context": self._context} | names

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave the TLS context unchanged: `requests` would add the public authorities to the cluster's own."""

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {}

    def get_connection_with_tls_context(self, request: Any, verify: Any, proxies: Any = None, cert: Any = None) -> Any:
        """The connection pool for a request. Cached, because `requests` parses the URL and the proxy's URL
        each time.
        """
        proxy = (proxies or {}).get("http")
        manager = self.proxy_manager.get(proxy) if proxy else self.poolmanager
        if manager is None:
            # the first request through this proxy
            return super().get_connection_with_tls_context(request, verify, proxies, cert)
        return manager.connection_from_host(**_host_of(request.url))

    def request_url(self, request: Any, proxies: Any) -> str:
        return _target(request.url, is_proxied=bool(proxies) and not is_socks(proxies["http"]))


@lru_cache(_KEPT)
def _host_of(url: str) -> Mapping[str, Any]:
    parts = urlsplit(url)
    return {"scheme": parts.scheme, "host": parts.hostname, "port": parts.port}


@lru_cache(_KEPT)
def _target(url: str, *, is_proxied: bool) -> str:
    """The target in the request line: the whole URL if an HTTP proxy reads it, else the path."""
    if is_proxied and not url.startswith("https:"):
        return str(urldefragauth(url))
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _keep_deadlines(manager: Any, through: Dial | None = None) -> None:
    """Give a pool manager connections with deadlines; `through` connects them."""

    class Plain(DeadlineConnection):
        longest_head = _LONGEST_HEAD
        dial: Dial | None = through

    class Encrypted(DeadlineTlsConnection):
        longest_head = _LONGEST_HEAD
        dial: Dial | None = through

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Encrypted

    manager.pool_classes_by_scheme = {"http": PlainPool, "https": EncryptedPool}


class _HttpStream:
    """A body as it arrives, undecoded."""

    def __init__(self, answer: requests.Response, request: Request, idle_timeout: float) -> None:
        self._answer = answer
        self._request = request
        self._headers = _lower(answer.headers)
        self._wire = _wire(answer)
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


def _received(answer: requests.Response, request: Request, budget: AnswerBudget) -> Response:
    """The answer with its body. Raises AnswerRefused and the errors of `requests` and urllib3."""
    headers = _lower(answer.headers)
    with _Reading(answer, headers, request, budget) as reading:
        return reading.response()


class _Reading:
    """Reads a body up to its limit, with room for it in the budget if it is long."""

    def __init__(
        self, answer: requests.Response, headers: Mapping[str, str], request: Request, budget: AnswerBudget
    ) -> None:
        self._answer, self._headers, self._request, self._budget = answer, headers, request, budget
        # the connection is free for others before the last bytes have found room
        self._ends_at = _CLOCK.now() + _seconds_left(answer)
        self._room: Room | None = None
        self._is_kept = False
        self._body = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # an exception keeps its frames, and a caller may keep the exception
        self._body.clear()
        if self._room is not None and not self._is_kept:
            self._room.close()

    def response(self) -> Response:
        """The whole answer. Raises AnswerRefused."""
        if self._headers.get("content-encoding", "").strip().lower() not in _NOT_ENCODED:
            raise self._refused("the server encoded its answer, which was not asked for")
        self._require_length(_announced(self._headers))
        try:
            self._read()
        except (HTTPError, OSError):
            # a reading that is cut fails like one whose server goes
            self._require_room()
            raise
        room = self._room
        found = Response(
            self._answer.status_code, self._headers, bytes(self._body), drop_with=room.drop_with if room else None
        )
        if room is not None:
            self._is_kept = room.keep(found)
            self._require_room()
        return found

    def _read(self) -> None:
        longest = self._request.longest_answer
        with read_at_most(_wire(self._answer), _FRAMING * longest + _LONGEST_HEAD, "chunks and trailers"):
            while piece := self._answer.raw.read(_CHUNK, decode_content=False):
                self._require_length(len(self._body) + len(piece))
                self._require_room_for(len(piece))
                self._body += piece

    def _require_length(self, length: int) -> None:
        longest = self._request.longest_answer
        if length > longest:
            raise self._refused(f"the server sent more than the {longest} bytes that its answer may have")

    def _require_room_for(self, count: int) -> None:
        """Take room for the next bytes, and for all bytes so far when the body is no longer short."""
        if self._room is None:
            if len(self._body) + count <= SHORT:
                return
            self._room, count = self._budget.room(self._cut), len(self._body) + count
        if not self._room.take(count, self._remaining):
            self._require_room()
            what = f"no room for its answer: the operator holds {self._budget.held} of {self._budget.most} bytes"
            raise self._refused(f"{what} of long answers of all clusters; it asks again later")

    def _require_room(self) -> None:
        """Raise AnswerRefused if another answer needs the room of this one."""
        if self._room is not None and self._room.gives_way:
            what = f"its answer gave way to another: all long answers may have {self._budget.most} bytes"
            raise self._refused(f"{what}, and the answers for this namespace had most; the operator asks again later")

    def _cut(self) -> None:
        """End the reading from another thread."""
        wire = _wire(self._answer)
        if wire is not None:
            with contextlib.suppress(OSError):
                # the method of a TLS socket would let its reader continue without decryption
                socket.socket.shutdown(wire, socket.SHUT_RDWR)

    def _remaining(self) -> float:
        """Seconds until the deadline of the answer."""
        return self._ends_at - _CLOCK.now()

    def _refused(self, why: str) -> AnswerRefused:
        return AnswerRefused(self._request.method, self._request.url, why)


def _announced(headers: Mapping[str, str]) -> int:
    """The length of a body by its headers; 0 if they have none."""
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() and length.isascii() and len(length) < 20 else 0


def _seconds_left(answer: requests.Response) -> float:
    """Seconds until the deadline; 0 if the body has arrived with the headers. Raises TimeoutError after it."""
    remaining = getattr(_wire(answer), "remaining", None)
    return (remaining() if remaining else None) or 0.0


def _wire(answer: requests.Response) -> socket.socket | None:
    """The socket that the body arrives on; None if the body has arrived with the headers."""
    wire: socket.socket | None = getattr(answer.raw.connection, "reading", None)
    return wire


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
    if isinstance(root, TooManyBytes):
        return AnswerRefused, str(root)
    if isinstance(root, NewConnectionError):
        return ConnectionRefused, _without_repr(root)
    if isinstance(error, _NOT_SENT):
        return ConnectionRefused, str(error)
    # errors that do not come from the system quote the server
    is_quoting = not isinstance(root, OSError)
    return ConnectionLost, f"the server does not speak HTTP ({type(root).__name__})" if is_quoting else str(root)


def _root(error: Exception) -> BaseException:
    """The original error below the layers that wrap it."""
    current: BaseException = error
    while True:
        named = getattr(current, "reason", None) or getattr(current, "original_error", None)
        inner = next(
            (cause for cause in (named, *current.args) if isinstance(cause, BaseException)),
            None,
        )
        if inner is None:
            return current
        current = inner


def _without_repr(error: NewConnectionError) -> str:
    """The message without the repr of the connection."""
    return str(error).partition(": ")[2] or str(error)
