"""SQL to the TiDB servers of the world, in process; what each of them carries out stands in `tidb`."""

from collections.abc import Callable, Sequence

from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionRefused, RequestTimeout
from sandbox.dataplane.network import Network, Origin
from sandbox.dataplane.tidb import TidbProcess


class SqlNetwork:
    """SQL as seen from somewhere; the operator is outside of all pods."""

    def __init__(self, network: Network, origin: Origin, changed: Callable[[], None]) -> None:
        self._network = network
        self._origin = origin
        self._changed = changed

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`. Raises SqlRefused, ConnectionRefused, RequestTimeout."""
        found = self._network.dial(login.host, login.port, self._origin, login.timeout)
        if found is None:
            raise RequestTimeout("SQL", login.url, f"no answer within {login.timeout} s")
        server = found.process
        if not isinstance(server, TidbProcess):
            raise ConnectionRefused("SQL", login.url, "no SQL server listens there")
        if refused := server.query(login.user, statements):
            raise SqlRefused(*refused)
        self._changed()
