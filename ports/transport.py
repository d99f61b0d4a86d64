"""The network as an argument: one request, one answer, or a stream of bytes.

Two implementations serve each side. Towards Kubernetes: HTTP (`kube.http_transport`) and the sandbox's API server in
process. Towards PD, TiKV and TiDB: HTTP (`dataplane.http_transport`) and the sandbox's data plane in process.

    TransportError
    ├── ConnectionRefused     nobody listens, or the name does not resolve: the request was not sent
    ├── ConnectionLost        reset, EOF, broken pipe: the request may have been carried out
    ├── RequestTimeout        no answer in time: the request may have been carried out
    ├── AnswerRefused         the answer is longer than allowed, or encoded: the request may have been carried out
    ├── TlsError              the peer is not who it should be: the request was not sent
    ├── CredentialMissing     no token could be had: the request was not sent
    └── TransportClosed       this side is stopping: the request was not sent
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

LONGEST_ANSWER = 1 << 20
"""Bytes of an answer's body, unless the request allows more."""


class Credentials(Protocol):
    """One side of TLS connections, as PEM: whom it trusts, and who it is."""

    @property
    def ca(self) -> bytes:
        """The certificates of the authorities that it trusts."""

    @property
    def cert(self) -> bytes:
        """Its own certificate."""

    @property
    def key(self) -> bytes:
        """The key of that."""

    @property
    def checks_names(self) -> bool:
        """Whether the other side's certificate must be for the name that is dialled."""


class TransportError(Exception):
    """Raised when a request got no HTTP answer. `url` names what was asked; it never carries a credential."""

    def __init__(self, method: str, url: str, cause: str) -> None:
        super().__init__(f"{method} {url}: {cause}")
        self.method = method
        self.url = url
        self.cause = cause


class RemoteError(Exception):
    """The base of errors that servers other than the Kubernetes API server answer.

    A stage that raises one has failed: the name of the class is the reason, and the stage is retried with back-off.
    """


class ConnectionRefused(TransportError):
    """Raised when nobody listens at the address or its name does not resolve. The request was not sent."""


class ConnectionLost(TransportError):
    """Raised when the connection ended before the answer did. The request may have been carried out."""


class RequestTimeout(TransportError):
    """Raised when no answer came in time. The request may have been carried out."""


class AnswerRefused(TransportError):
    """Raised when an answer exceeds a limit or is encoded. The request may have been carried out."""


class TlsError(TransportError):
    """Raised when the TLS handshake failed. The request was not sent."""


class CredentialMissing(TransportError):
    """Raised when the identity that a request needs cannot be had. The request was not sent."""


class TransportClosed(TransportError):
    """Raised when this side is stopping and sends nothing more. The request was not sent."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    `url` is an absolute URL towards the data plane, and a path with its query towards Kubernetes
    (the transport knows the server). `timeout` is in seconds and covers the whole exchange, or,
    for a stream, the time to the response headers.

    `longest_answer` is how many bytes the body of the answer may have; the transport towards Kubernetes, which is
    trusted, sets no limit.

    `receiver` is called when an answer with status 200 begins, and returns what takes its body piece by piece. Such a
    body may take as long as it wants: `timeout` then is for each silence. A transport that has the whole body anyway
    may ignore it. `client` is the IP address that a server received the request from; who sends one leaves it empty.
    `only_asks`: it changes nothing, whatever its method, as the reads of etcd's JSON gateway, and writes
    that the API server only tries.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float = 30.0
    receiver: Callable[[], Callable[[bytes], None]] | None = field(default=None, compare=False, repr=False)
    only_asks: bool = False
    client: str = field(default="", compare=False)
    longest_answer: int = LONGEST_ANSWER

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET" or self.only_asks


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP answer; header names are lower-case. `streamed` bytes went to the request's receiver, not to `body`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    streamed: int = 0


class ByteStream(Protocol):
    """The body of an answer that is read as it comes."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, names in lower-case."""

    def __iter__(self) -> Iterator[bytes]:
        """Chunks as they arrive, of any size; ends at a clean end of the body.

        Raises ConnectionLost or RequestTimeout when the stream breaks.
        """

    def abort(self) -> None:
        """End a read that blocks in another thread (informers-workqueue.md TH-10). Idempotent."""

    def close(self) -> None:
        """Release the connection. Called by the thread that reads."""


class Transport(Protocol):
    """Sends requests. Safe for use by many threads."""

    def request(self, request: Request) -> Response:
        """Send and read the whole answer. Any HTTP status is an answer. Raises TransportError."""

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return once the headers have arrived.

        The stream breaks after `idle_timeout` seconds without a line; blank lines do not count.

        Raises TransportError.
        """
