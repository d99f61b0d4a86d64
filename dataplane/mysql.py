"""SQL over MySQL's client protocol, by PyMySQL; through a proxy of HTTP or SOCKS if `ALL_PROXY` names one."""

import socket
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from ports.deadlines import with_deadline
from ports.proxies import is_socks, proxy_for
from ports.socks import dial
from ports.sql import SqlLogin
from ports.transport import ConnectionRefused, RequestTimeout

_LONGEST_HEAD = 10_000
"""The maximum size of a proxy's answer in bytes."""


class MySqlConnector:
    """Executes SQL over TCP, with TLS if the login requires it. Implements `SqlConnector`."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`ports.proxies` finds the proxy in the variables of `environ`."""
        self._environ = environ or {}

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """Execute statements; see `SqlConnector`."""
        # with cryptography, PyMySQL takes 9 MB, which most operators never need
        from dataplane.mysql_connection import connected  # noqa: PLC0415

        with connected(login, lambda: with_deadline(_dialled(login, proxy_for(login.url, self._environ)))) as run:
            for statement in statements:
                run(statement)


def _dialled(login: SqlLogin, proxy: str | None) -> socket.socket:
    """Connect to the server. Raises TransportError."""
    if proxy:
        return _tunnel(proxy, login)
    try:
        return socket.create_connection((login.host, login.port), login.timeout)
    except TimeoutError:
        raise RequestTimeout("SQL", login.url, f"no answer within {login.timeout} s") from None
    except OSError as error:
        raise ConnectionRefused("SQL", login.url, str(error)) from error


def _tunnel(proxy: str, login: SqlLogin) -> socket.socket:
    """Connect to the server through a proxy. Raises TransportError."""
    address = urlsplit(proxy)
    if not is_socks(proxy) and (address.scheme != "http" or not address.hostname):
        what = f"ALL_PROXY names {address.scheme}://, SQL goes through http:// or socks5:// only"
        raise ConnectionRefused("SQL", login.url, what)
    try:
        if is_socks(proxy):
            return dial(proxy, login.host, login.port, login.timeout)
        connection = socket.create_connection((address.hostname, address.port or 80), login.timeout)
        _ask_for_tunnel(connection, f"{login.host}:{login.port}")
    except TimeoutError:
        raise RequestTimeout("SQL", login.url, f"the proxy gave no answer within {login.timeout} s") from None
    except OSError as error:
        raise ConnectionRefused("SQL", login.url, f"the proxy at {address.hostname}: {error}") from error
    return connection


def _ask_for_tunnel(connection: socket.socket, target: str) -> None:
    """Send CONNECT (RFC 9110, 9.3.6). Raises OSError."""
    connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = b""
    # byte by byte, because MySQL servers speak first: bytes after the head belong to the server
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte or len(head) > _LONGEST_HEAD:
            raise ConnectionAbortedError("it hung up")
        head += byte
    status = head.partition(b"\r\n")[0].decode("latin-1")
    if status.split()[1:2] != ["200"]:
        raise ConnectionAbortedError(f"it answered {status!r}")
