"""The data plane for an operator that only observes: reads pass, writes fail (docs/migration.md)."""

from collections.abc import Callable, Sequence

from ports.grpc import PendingCall, UnaryCall, UnaryCalls
from ports.observation import always
from ports.sql import SqlConnector, SqlLogin
from ports.transport import ByteStream, Request, Response, Transport, TransportError

_WHY = "not sent: this process only observes"

Planned = Callable[[str, str], None]
"""Receives method and URL of each write that was not sent."""


class ReadOnlyTransport:
    """Passes reads on. Every write fails and is reported to `planned`."""

    def __init__(self, transport: Transport, planned: Planned, when: Callable[[], bool] = always) -> None:
        """While `when` returns False, everything passes."""
        self._transport = transport
        self._planned = planned
        self._when = when

    def request(self, request: Request) -> Response:
        """Send a read, or raise for a write; see `Transport`."""
        if request.is_read or not self._when():
            return self._transport.request(request)
        self._planned(request.method, request.url)
        raise TransportError(request.method, request.url, _WHY)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


class NoSql:
    """Executes no SQL, because the operator's statements change passwords."""

    def __init__(self, sql: SqlConnector, planned: Planned, when: Callable[[], bool] = always) -> None:
        """While `when` returns False, `sql` executes all statements."""
        self._sql = sql
        self._planned = planned
        self._when = when

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """Raise TransportError, or execute through `sql`; see `SqlConnector`."""
        if not self._when():
            self._sql.execute(login, statements)
            return
        if statements:
            self._planned("SQL", login.url)
        raise TransportError("SQL", login.url, _WHY)


class NoGrpc:
    """Begins no gRPC calls, because the operator's only one makes servers write."""

    def __init__(self, calls: UnaryCalls, planned: Planned, when: Callable[[], bool] = always) -> None:
        """While `when` returns False, `calls` begins all calls."""
        self._calls = calls
        self._planned = planned
        self._when = when

    def begin(self, call: UnaryCall) -> PendingCall:
        """Raise TransportError, or begin the call; see `UnaryCalls`."""
        if not self._when():
            return self._calls.begin(call)
        self._planned("gRPC", call.url + call.method)
        raise TransportError("gRPC", call.url + call.method, _WHY)
