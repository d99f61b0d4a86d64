"""SQL to the TiDB servers of the world, in process; what each of them carries out stands in `tidb`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TlsError
from sandbox.dataplane.network import Network, Origin
from sandbox.dataplane.tables import Rows
from sandbox.dataplane.tidb import TidbProcess
from sandbox.dataplane.tls import Certificate, ServerSide


@dataclass(frozen=True, slots=True)
class SqlServer:
    """A server to whom a client has connected. `changed` wakes who depends on what it does."""

    process: TidbProcess
    changed: Callable[[], None]

    @property
    def version(self) -> str:
        """As MySQL's clients see it."""
        return self.process.version

    @property
    def tls(self) -> ServerSide | None:
        """How it speaks TLS, None when it does not."""
        return self.process.sql_tls()

    def login(self, user: str, password: str = "") -> None:
        """Let in a user. Raises SqlRefused."""
        if refused := self.process.login(user, password):
            raise SqlRefused(*refused)

    def execute(self, statement: str) -> Rows | None:
        """Carry out a statement of who was let in; what it answers. Raises SqlRefused, ConnectionLost."""
        if self.process.exit is not None:
            raise ConnectionLost("SQL", "", "the server has ended")
        answer = self.process.execute(statement)
        self.changed()
        return answer


class SqlNetwork:
    """SQL as seen from somewhere; the operator is outside of all pods."""

    def __init__(self, network: Network, origin: Origin, changed: Callable[[], None]) -> None:
        self._network = network
        self._origin = origin
        self._changed = changed

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`. Raises SqlRefused, ConnectionRefused, ConnectionLost, RequestTimeout."""
        self.ask(login, statements)

    def ask(
        self, login: SqlLogin, statements: Sequence[str], password: str = "", tls: Certificate | None = None
    ) -> list[Rows]:
        """The same, over TLS where `tls` is given; what those statements answer that do.

        Raises as `execute`, and TlsError.
        """
        found = self._network.dial(login.host, login.port, self._origin, login.timeout)
        if found is None:
            raise RequestTimeout("SQL", login.url, f"no answer within {login.timeout} s")
        if not isinstance(found.process, TidbProcess):
            raise ConnectionRefused("SQL", login.url, "no SQL server listens there")
        server = SqlServer(found.process, self._changed)
        if tls is not None and (refused := self._network.handshake_failure(tls, server.tls, login.host)):
            raise TlsError("SQL", login.url, refused)
        server.login(login.user, password)
        answers = [server.execute(statement) for statement in statements]
        return [each for each in answers if each is not None]

    def server(self, host: str, port: int) -> SqlServer | None:
        """Who speaks SQL behind an address, None when nobody does."""
        try:
            found = self._network.dial(host, port, self._origin, 0.0)
        except ConnectionRefused:
            return None
        process = found.process if found is not None else None
        if not isinstance(process, TidbProcess) or not process.speaks_sql(port):
            return None
        return SqlServer(process, self._changed)
