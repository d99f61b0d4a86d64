"""gRPC to the world's servers, in process: a call continues beside its caller, on the world's clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ports.clock import Clock
from ports.grpc import UNIMPLEMENTED, CallRefused, PendingCall, UnaryCall
from ports.transport import ByteStream, Credentials, Request, RequestTimeout, Response, Transport, TransportError
from sandbox.dataplane.network import Network, Origin

STATUS = "grpc-status"
"""The header with a call's status, 0 for success."""
_AFTER = "x-after"
"""The header with the time at which the answer arrives."""
_UNKNOWN = 2
_CODES: Mapping[int, int] = {200: 0, 400: 13, 401: 16, 403: 7, 404: UNIMPLEMENTED, 429: 14, 502: 14, 503: 14, 504: 14}
"""gRPC's status for an answer that is none of gRPC's, by HTTP status."""


class BackgroundTransport:
    """Sends requests whose answers arrive later; a header says when."""

    def __init__(self, network: Network, origin: Origin, clock: Clock) -> None:
        self._network = network
        self._origin = origin
        self._clock = clock

    def request(self, request: Request) -> Response:
        """The answer that will arrive. Raises ConnectionRefused, ConnectionLost, TlsError."""
        answer = self._network.begin(request, self._origin)
        due = self._clock.now() + answer.delay
        return Response(answer.response.status, {**answer.response.headers, _AFTER: str(due)}, answer.response.body)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:  # noqa: ARG002
        """Raise TransportError: there are no streams."""
        raise TransportError(request.method, request.url, "the sandbox's data plane has no streams")


@dataclass(frozen=True, slots=True)
class GrpcNetwork:
    """Calls through a transport that `connect` returns for a client's credentials. Implements `UnaryCalls`."""

    clock: Clock
    connect: Callable[[Credentials | None], Transport]

    def begin(self, call: UnaryCall) -> PendingCall:
        """See `UnaryCalls`."""
        headers = {"content-type": "application/grpc", "te": "trailers"}
        request = Request("POST", call.url + call.method, headers, call.body, call.timeout)
        return _Pending(call, self.clock, self.clock.now(), self.connect(call.credentials).request(request))


@dataclass(slots=True)
class _Pending:
    """A call that began at the time `since`."""

    call: UnaryCall
    clock: Clock
    since: float
    response: Response
    is_cancelled: bool = False

    def answer(self) -> bytes | None:
        now, due = self.clock.now(), float(self.response.headers[_AFTER])
        if self.is_cancelled or min(now, due) >= self.since + self.call.timeout:
            raise RequestTimeout("gRPC", self.call.url + self.call.method, "no answer in time")
        if now < due:
            return None
        code = int(self.response.headers.get(STATUS) or _CODES.get(self.response.status, _UNKNOWN))
        if code:
            raise CallRefused(code, self.response.body.decode("utf-8", "replace"))
        return self.response.body

    def cancel(self) -> None:
        self.is_cancelled = True
