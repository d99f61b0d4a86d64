"""The data plane for who only observes: it is read, and told nothing (docs/migration.md)."""

from collections.abc import Callable, Sequence

from ports.observation import always
from ports.sql import SqlConnector, SqlLogin
from ports.transport import ByteStream, Request, Response, Transport, TransportError

_WHY = "not sent: this process only observes"

Planned = Callable[[str, str], None]
"""Is told method and URL of what would have been sent."""


class ReadOnlyTransport:
    """Lets reads pass; every other request fails, and `planned` is told of it."""

    def __init__(self, transport: Transport, planned: Planned, when: Callable[[], bool] = always) -> None:
        """While `when` does not hold, everything passes."""
        self._transport = transport
        self._planned = planned
        self._when = when

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if request.is_read or not self._when():
            return self._transport.request(request)
        self._planned(request.method, request.url)
        raise TransportError(request.method, request.url, _WHY)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)


class NoSql:
    """Carries nothing out: statements change passwords."""

    def __init__(self, sql: SqlConnector, planned: Planned, when: Callable[[], bool] = always) -> None:
        """While `when` does not hold, `sql` carries everything out."""
        self._sql = sql
        self._planned = planned
        self._when = when

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`. Raises TransportError, and what `sql` raises."""
        if not self._when():
            self._sql.execute(login, statements)
            return
        if statements:
            self._planned("SQL", login.url)
        raise TransportError("SQL", login.url, _WHY)
