"""Sockets that other threads can shut down.

Closing a response while another thread reads it hangs until data arrives; shutting down the socket wakes the reader
immediately (informers-workqueue.md TH-10). A pool therefore registers each connection when it opens, before a request
is sent over it (TH-12).
"""

import contextlib
import socket
import threading
from weakref import WeakKeyDictionary

from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ports.deadlines import DeadlineConnection, DeadlineTlsConnection, Dial


class OpenConnections:
    """The sockets of all connections of a pool."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: WeakKeyDictionary[object, socket.socket] = WeakKeyDictionary()
        self.closed = False

    def opened(self, connection: HTTPConnection) -> None:
        """Register a new connection; shut it down if the pool has been closed."""
        with self._lock:
            self._sockets[connection] = connection.sock
            closed = self.closed
        if closed:
            shut_down(connection.sock)

    def socket_of(self, connection: object) -> socket.socket:
        """The socket of an open connection. It stays usable while the answer is read."""
        with self._lock:
            return self._sockets[connection]

    def close(self) -> None:
        """Wake every thread that reads or writes, and refuse further connections."""
        with self._lock:
            self.closed = True
            sockets = list(self._sockets.values())
        for each in sockets:
            shut_down(each)


def shut_down(connected: socket.socket) -> None:
    """End reads and writes that block in other threads. Idempotent."""
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def tracking_pools(connections: OpenConnections, through: Dial | None = None) -> dict[str, type[HTTPConnectionPool]]:
    """urllib3's pool classes by scheme, extended to register each connection; `through` connects in its place."""

    class Plain(DeadlineConnection):
        dial: Dial | None = through

        def connect(self) -> None:
            super().connect()
            connections.opened(self)

    class Encrypted(DeadlineTlsConnection):
        dial: Dial | None = through

        def connect(self) -> None:
            super().connect()
            connections.opened(self)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    return {"http": PlainPool, "https": EncryptedPool}
