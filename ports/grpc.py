"""A unary gRPC call that runs beside its caller, as an argument.

`dataplane.grpc_calls` begins real calls, `sandbox.dataplane.grpc` calls of its own servers on its clock.
"""

from dataclasses import dataclass
from typing import Protocol

from ports.transport import Credentials

UNIMPLEMENTED = 12
"""The status of a method that the server, or this process, does not offer."""


@dataclass(frozen=True, slots=True)
class UnaryCall:
    """A call: `url` has scheme, host and port of the server, `method` is `/package.Service/Method`.

    `timeout` is in seconds and covers the whole call. `longest_answer` is the maximum size of the answer in bytes.
    `credentials` are of the client, None without TLS.
    """

    url: str
    method: str
    body: bytes = b""
    timeout: float = 180.0
    longest_answer: int = 1 << 16
    credentials: Credentials | None = None


class CallRefused(Exception):
    """Raised when a call gets a status other than OK; `code` is gRPC's, `message` the text of server or library."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"status {code}: {message}")
        self.code = code
        self.message = message


class PendingCall(Protocol):
    """A call under way. Thread-safe."""

    def answer(self) -> bytes | None:
        """The answer; None while there is none yet. Never waits. Raises CallRefused, TransportError."""

    def cancel(self) -> None:
        """Give the call up. Idempotent; the server may carry it out nevertheless."""


class UnaryCalls(Protocol):
    """Begins calls. Thread-safe."""

    def begin(self, call: UnaryCall) -> PendingCall:
        """Send a call without waiting for its answer. Raises CallRefused, TransportError."""
