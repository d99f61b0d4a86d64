"""SQL to the world's TiDB servers, in process; `tidb` executes it.

`ask` and `execute` fail while a leader is missing. A connection (`connect`, `server`) waits for leaders as TiDB does:
it looks again until the sum of its waits is the budget of TiDB's back-off.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TlsError
from sandbox.dataplane.network import Network, Origin
from sandbox.dataplane.tables import PD_TIMEOUT, UNAVAILABLE, Rows
from sandbox.dataplane.tidb import TidbProcess
from sandbox.dataplane.tls import Certificate, ServerSide

_USE = re.compile(r"\s*USE\s+`?(\w+)`?\s*", re.IGNORECASE)
_BEFORE_A_TABLE = "|".join(
    (
        r"CREATE TABLE(?: IF NOT EXISTS)?",
        r"(?:DROP|ALTER|TRUNCATE|ANALYZE) TABLE(?: IF EXISTS)?",
        r"(?:INSERT|REPLACE) INTO",
        r"DELETE FROM",
        r"UPDATE",
        r"SELECT (?:\*|COUNT\(\*\)) FROM",
        r"CREATE (?:UNIQUE )?INDEX `?\w+`? ON",
    )
)
_UNQUALIFIED = re.compile(rf"((?:{_BEFORE_A_TABLE}) )`?(?!IF )(\w+)`?(?=[^\w.`]|$)", re.IGNORECASE)
_NO_DATABASE = 1046
_BEGINS, _ENDS = ("BEGIN", "START TRANSACTION"), ("COMMIT",)
_READS, _OF_ROWS = ("SELECT", "SHOW"), ("INSERT", "REPLACE", "DELETE", "UPDATE")
_LOOK = 0.05
"""Seconds between two looks for a leader: TiDB's back-offs are from milliseconds to half a second."""
_FOR_TIMESTAMP, _FOR_READ, _FOR_WRITE = 15.0, 20.0, 40.0
"""client-go's budgets: seconds of back-off for a timestamp, for a read and for a write."""


@dataclass(slots=True)
class SqlServer:
    """A connection to a server. `changed` wakes the dependants of its effects; `database` is set by `USE`.

    With a `network` it goes to the leaders, and waits for them.
    """

    process: TidbProcess
    changed: Callable[[], None]
    database: str = ""
    network: Network | None = None
    in_transaction: bool = False

    @property
    def version(self) -> str:
        """The version that MySQL clients see."""
        return self.process.version

    @property
    def tls(self) -> ServerSide | None:
        """Its TLS; None without TLS."""
        return self.process.sql_tls()

    def login(self, user: str, password: str = "") -> None:
        """Log a user in. Raises SqlRefused."""
        if refused := self.process.login(user, password):
            raise SqlRefused(*refused)

    def execute(self, statement: str) -> Rows | None:
        """Execute a statement and return its result. Raises SqlRefused, ConnectionLost."""
        qualified = self._qualified(statement)
        answer = self._try(qualified) if self.network is None else self._wait_for_leaders(qualified, self.network)
        if used := _USE.fullmatch(statement):
            self.database = used[1]
        verb = qualified.upper()
        if verb.startswith((*_BEGINS, *_ENDS)):
            self.in_transaction = verb.startswith(_BEGINS)
        elif self.network is None or not verb.startswith((*_READS, *_OF_ROWS)):
            self.changed()
        return answer

    def _try(self, statement: str) -> Rows | None:
        """Raises SqlRefused, ConnectionLost."""
        if self.process.exit is not None:
            raise ConnectionLost("SQL", "", "the server has ended")
        if self.network is None:
            return self.process.execute(statement)
        if self.process.is_stopping and not self.in_transaction:
            raise ConnectionLost("SQL", "", "the server is shutting down")
        with self.network.lock:
            return self.process.execute(statement, by_leaders=True)

    def _wait_for_leaders(self, statement: str, network: Network) -> Rows | None:
        """Raises SqlRefused after the budget, ConnectionLost."""
        waited = 0.0
        while True:
            try:
                return self._try(statement)
            except SqlRefused as refused:
                if waited >= _budget(refused.code, statement):
                    raise
            network.pause(_LOOK)
            waited += _LOOK

    def _qualified(self, statement: str) -> str:
        """The statement with the database before the name of its table. Raises SqlRefused."""
        match = _UNQUALIFIED.match(words := " ".join(statement.split()))
        if match is None:
            return statement
        if not self.database:
            raise SqlRefused(_NO_DATABASE, "No database selected")
        return f"{match[1]}{self.database}.{match[2]}{words[match.end() :]}"


def _budget(code: int, statement: str) -> float:
    """The seconds for which TiDB backs off before it reports an error; 0 for errors that no leader cures."""
    if code == PD_TIMEOUT:
        return _FOR_TIMESTAMP
    if code == UNAVAILABLE:
        return _FOR_READ if statement.upper().startswith(_READS) else _FOR_WRITE
    return 0.0


class SqlNetwork:
    """SQL from a pod or from outside; the operator is outside of all pods."""

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
        """Execute statements, over TLS if `tls` is given, and return the results of those that have one.

        Raises like `execute`, and TlsError.
        """
        server = self._logged_in(login, password, tls)
        answers = [server.execute(statement) for statement in statements]
        return [answer for answer in answers if answer is not None]

    def connect(self, login: SqlLogin) -> SqlServer:
        """Open a connection that waits for leaders. Raises SqlRefused, ConnectionRefused, RequestTimeout."""
        server = self._logged_in(login)
        if server.process.is_stopping:
            raise ConnectionRefused("SQL", login.url, "the server is shutting down")
        server.network = self._network
        return server

    def _logged_in(self, login: SqlLogin, password: str = "", tls: Certificate | None = None) -> SqlServer:
        found = self._network.dial(login.host, login.port, self._origin, login.timeout)
        if found is None:
            raise RequestTimeout("SQL", login.url, f"no answer within {login.timeout} s")
        if not isinstance(found.process, TidbProcess):
            raise ConnectionRefused("SQL", login.url, "no SQL server listens there")
        server = SqlServer(found.process, self._changed)
        if tls is not None and (refused := self._network.handshake_failure(tls, server.tls, login.host)):
            raise TlsError("SQL", login.url, refused)
        server.login(login.user, password)
        return server

    def server(self, host: str, port: int) -> SqlServer | None:
        """The SQL server at an address, or None."""
        try:
            found = self._network.dial(host, port, self._origin, 0.0)
        except ConnectionRefused:
            return None
        process = found.process if found is not None else None
        if not isinstance(process, TidbProcess) or not process.speaks_sql(port):
            return None
        return SqlServer(process, self._changed, network=self._network)
