"""The network as an argument: one request, one answer, or a stream of bytes.

Two implementations serve each side. Towards Kubernetes: HTTP (`kube.http_transport`) and the sandbox's API server in
process. Towards PD, TiKV and TiDB: HTTP (`dataplane.http_transport`) and the sandbox's data plane in process.

    TransportError
    ├── ConnectionRefused     no server listens, or the name does not resolve: the request was not sent
    ├── ConnectionLost        reset, EOF, broken pipe: the server may have applied the request
    ├── RequestTimeout        no answer in time: the server may have applied the request
    ├── AnswerRefused         the answer is too long, or encoded: the server may have applied the request
    ├── TlsError              the peer cannot prove its identity: the request was not sent
    ├── CredentialMissing     no credential is available: the request was not sent
    └── TransportClosed       this process is stopping: the request was not sent
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

LONGEST_ANSWER = 1 << 20
"""The default maximum size of an answer's body in bytes."""


class Credentials(Protocol):
    """The credentials of one side of a TLS connection, as PEM."""

    @property
    def ca(self) -> bytes:
        """The certificates of the trusted authorities."""

    @property
    def cert(self) -> bytes:
        """The own certificate."""

    @property
    def key(self) -> bytes:
        """The private key of the certificate."""

    @property
    def checks_names(self) -> bool:
        """True if the peer's certificate must cover the dialled name."""


class TransportError(Exception):
    """Raised when a request gets no HTTP answer. `url` never contains a credential."""

    def __init__(self, method: str, url: str, cause: str) -> None:
        super().__init__(f"{method} {url}: {cause}")
        self.method = method
        self.url = url
        self.cause = cause


class RemoteError(Exception):
    """The base of errors from servers other than the Kubernetes API server.

    A stage that raises one has failed. The class name becomes the reason, and the stage is retried with back-off.
    """


class ConnectionRefused(TransportError):
    """Raised when no server listens at the address or the name does not resolve. The request was not sent."""


class ConnectionLost(TransportError):
    """Raised when the connection ends before the answer does. The server may have applied the request."""


class RequestTimeout(TransportError):
    """Raised when the answer does not arrive in time. The server may have applied the request."""


class AnswerRefused(TransportError):
    """Raised when an answer exceeds a maximum or is encoded. The server may have applied the request."""


class TlsError(TransportError):
    """Raised when the TLS handshake failed. The request was not sent."""


class CredentialMissing(TransportError):
    """Raised when no credential for the request is available. The request was not sent."""


class TransportClosed(TransportError):
    """Raised when this process is stopping. The request was not sent."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request.

    `url` is absolute towards the data plane, and a path with its query towards Kubernetes, where the transport knows
    the server. `timeout` is in seconds and covers the whole exchange or, for a stream, the time to the headers.

    `longest_answer` is the maximum size of the answer's body in bytes; the transport towards Kubernetes, which is
    trusted, ignores it.

    When an answer with status 200 begins, `receiver` is called and returns the consumer of the body's pieces. Such a
    body may take any time: `timeout` then limits each silence. A transport that has the whole body anyway may ignore
    `receiver`.

    `client` is the IP address from which a server received the request; senders leave it empty. `only_asks` marks a
    request that changes nothing whatever its method, e.g. a read through etcd's JSON gateway or a dry run.
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
        """True if the request changes nothing."""
        return self.method == "GET" or self.only_asks


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Response:
    """An HTTP answer; header names are in lower case. `streamed` bytes went to the request's receiver, not
    to `body`.

    Code that keeps a long answer gives `drop_with` the function that lets go of it, in case its memory is needed; None
    for an answer that may be kept.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    streamed: int = 0
    drop_with: Callable[[Callable[[], None]], None] | None = field(default=None, compare=False, repr=False)


class ByteStream(Protocol):
    """The body of an answer, read as it arrives."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, with names in lower case."""

    def __iter__(self) -> Iterator[bytes]:
        """Chunks of any size as they arrive, until the end of the body.

        Raises ConnectionLost or RequestTimeout if the stream breaks.
        """

    def abort(self) -> None:
        """End a read that blocks in another thread (informers-workqueue.md TH-10). Idempotent."""

    def close(self) -> None:
        """Release the connection. Only the reading thread calls it."""


class Transport(Protocol):
    """Sends requests. Thread-safe."""

    def request(self, request: Request) -> Response:
        """Send and read the whole answer. Any HTTP status is an answer. Raises TransportError."""

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Send and return after the headers.

        The stream breaks after `idle_timeout` seconds without a line; blank lines do not count. Raises TransportError.
        """
