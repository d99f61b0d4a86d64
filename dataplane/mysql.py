"""SQL over MySQL's client protocol, by PyMySQL; through an HTTP proxy where `ALL_PROXY` names one."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import pymysql
from pymysql.constants import CR

from ports.proxies import proxy_for
from ports.sql import SqlLogin, SqlRefused
from ports.tls import verifying_context
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TlsError

_OF_CLIENT = range(CR.CR_ERROR_FIRST, CR.CR_ERROR_FIRST + 1000)
"""The codes that a server does not send."""

_NONSENSE = (struct.error, LookupError, ValueError, AssertionError, RuntimeError)
"""What PyMySQL raises for bytes that are no MySQL."""

_LONGEST_HEAD = 10_000
"""Bytes of a proxy's answer."""


class MySqlConnector:
    """See `SqlConnector`: over TCP, and TLS where the login says so."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`environ` are environment variables, of which `ports.proxies` reads the proxy."""
        self._environ = environ or {}

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`."""
        proxy = proxy_for(login.url, self._environ)
        with _typed_errors(login), contextlib.closing(_connection(login)) as connection:
            connection.connect(_tunnel(proxy, login) if proxy else None)
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)


def _connection(login: SqlLogin) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    """One that is yet to connect."""
    context = verifying_context(cadata=login.ca) if login.ca else None
    return pymysql.Connection(
        defer_connect=True,
        host=login.host,
        port=login.port,
        user=login.user,
        connect_timeout=login.timeout,
        read_timeout=login.timeout,
        write_timeout=login.timeout,
        autocommit=None,
        ssl=context,
        ssl_disabled=context is None,
    )


def _tunnel(proxy: str, login: SqlLogin) -> socket.socket:
    """A connection to the server through an HTTP proxy. Raises TransportError."""
    found = urlsplit(proxy)
    if found.scheme != "http" or not found.hostname:
        raise ConnectionRefused("SQL", login.url, f"ALL_PROXY names {found.scheme}://, SQL goes through http:// only")
    try:
        connection = socket.create_connection((found.hostname, found.port or 80), login.timeout)
        _ask_for_tunnel(connection, f"{login.host}:{login.port}")
    except TimeoutError:
        raise RequestTimeout("SQL", login.url, f"the proxy gave no answer within {login.timeout} s") from None
    except OSError as error:
        raise ConnectionRefused("SQL", login.url, f"the proxy at {found.hostname}: {error}") from error
    return connection


def _ask_for_tunnel(connection: socket.socket, target: str) -> None:
    """CONNECT (RFC 9110, 9.3.6). Raises OSError."""
    connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = b""
    # byte by byte: MySQL's servers speak first, so what follows the head is theirs
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte or len(head) > _LONGEST_HEAD:
            raise ConnectionAbortedError("it hung up")
        head += byte
    status = head.partition(b"\r\n")[0].decode("latin-1")
    if status.split()[1:2] != ["200"]:
        raise ConnectionAbortedError(f"it answered {status!r}")


@contextlib.contextmanager
def _typed_errors(login: SqlLogin) -> Iterator[None]:
    try:
        yield
    except pymysql.MySQLError as error:
        raise _typed(login, error) from error
    except _NONSENSE as error:
        raise ConnectionLost("SQL", login.url, f"the server does not speak MySQL's protocol: {error}") from error


def _typed(login: SqlLogin, error: pymysql.MySQLError) -> Exception:
    match getattr(error, "original_exception", None) or error.__context__:
        case ssl.SSLError() as cause:
            return TlsError("SQL", login.url, str(cause))
        case TimeoutError():
            return RequestTimeout("SQL", login.url, f"no answer within {login.timeout} s")
        case ConnectionRefusedError() | socket.gaierror() as cause:
            return ConnectionRefused("SQL", login.url, str(cause))
    match error.args:
        case (int(code), str(message)) if code and code not in _OF_CLIENT:
            return SqlRefused(code, message)
    return ConnectionLost("SQL", login.url, str(error))
