"""The data plane for who only observes: it is read, and told nothing (docs/migration.md)."""

from collections.abc import Callable, Sequence

from ports.sql import SqlLogin
from ports.transport import ByteStream, Request, Response, Transport, TransportError

_WHY = "not sent: this process only observes"

Planned = Callable[[str, str], None]
"""Is told method and URL of what would have been sent."""


class ReadOnlyTransport:
    """Lets reads pass; every other request fails, and `planned` is told of it."""

    def __init__(self, transport: Transport, planned: Planned) -> None:
        self._transport = transport
        self._planned = planned

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if request.is_read:
            return self._transport.request(request)
        self._planned(request.method, request.url)
        raise TransportError(request.method, request.url, _WHY)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`."""
        return self._transport.stream(request, idle_timeout)


class NoSql:
    """Carries nothing out: statements change passwords."""

    def __init__(self, planned: Planned) -> None:
        self._planned = planned

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`. Raises TransportError."""
        if statements:
            self._planned("SQL", login.url)
        raise TransportError("SQL", login.url, _WHY)
