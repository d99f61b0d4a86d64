"""Faults of the n-th write of the operator: it ends after it, or the answer is lost."""

from typing import Literal

from ports.transport import ByteStream, ConnectionLost, Request, Response, Transport
from simulate.engine.calls import Crash

Kind = Literal["crash after", "lost"]


class WriteFaults:
    """A layer between the operator and the API server; events do not count."""

    def __init__(self) -> None:
        self.made: list[str] = []
        """The writes that were sent, as method and path."""
        self._at = 0
        self._kind: Kind | None = None

    def strike(self, at: int, kind: Kind) -> None:
        """Let the write with this number, counted from the first, fail."""
        self._at, self._kind = at, kind

    def around(self, transport: Transport) -> Transport:
        """The transport with the faults."""
        return _Faulty(self, transport)

    def carry(self, transport: Transport, request: Request) -> Response:
        """Send a write. Raises Crash, ConnectionLost."""
        strikes = len(self.made) + 1 == self._at
        self.made.append(f"{request.method} {request.url}")
        answer = transport.request(request)
        if strikes and self._kind == "crash after":
            raise Crash(self.made[-1])
        if strikes:
            raise ConnectionLost(request.method, request.url, "no answer")
        return answer


class _Faulty:
    def __init__(self, faults: WriteFaults, transport: Transport) -> None:
        self._faults, self._transport = faults, transport

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if request.is_read or "/events" in request.url:
            return self._transport.request(request)
        return self._faults.carry(self._transport, request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)
