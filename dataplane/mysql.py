"""SQL over MySQL's client protocol, by PyMySQL; through a proxy of HTTP or SOCKS if `ALL_PROXY` names one.

The server is not trusted: its bytes in one login have a maximum, and the handshake and each answer have a deadline
(docs/security.md).
"""

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

import pymysql
from pymysql.constants import CR

from ports.deadlines import DeadlineTlsSocket, arm, with_deadline
from ports.proxies import is_socks, proxy_for
from ports.socks import dial
from ports.sql import SqlLogin, SqlRefused
from ports.tls import verifying_context
from ports.transport import AnswerRefused, ConnectionLost, ConnectionRefused, RequestTimeout, TlsError

_OF_CLIENT = range(CR.CR_ERROR_FIRST, CR.CR_ERROR_FIRST + 1000)
"""Error codes of the client library, which a server does not send."""

_NONSENSE = (struct.error, LookupError, ValueError, AssertionError, RuntimeError)
"""The exceptions of PyMySQL for bytes that are not MySQL's protocol."""

_LONGEST_HEAD = 10_000
"""The maximum size of a proxy's answer in bytes."""

_MOST_BYTES = 1 << 16
"""The maximum that a server may send in one login, in bytes. A greeting, and an OK or an error per statement, take
hundreds.
"""


class MySqlConnector:
    """Executes SQL over TCP, with TLS if the login requires it. Implements `SqlConnector`."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`ports.proxies` finds the proxy in the variables of `environ`."""
        self._environ = environ or {}

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """Execute statements; see `SqlConnector`."""
        with _typed_errors(login), contextlib.closing(_Bounded(login)) as connection:
            connection.connect(with_deadline(_dialled(login, proxy_for(login.url, self._environ))))
            with connection.cursor() as cursor:
                for statement in statements:
                    connection.restart_deadline()
                    cursor.execute(statement)


class _TooLong(Exception):
    """Raised when a server sends more bytes than its answers may have."""


class _Bounded(pymysql.Connection):
    """A connection on a socket with a deadline and a maximum number of bytes to read."""

    _sock: socket.socket

    def __init__(self, login: SqlLogin) -> None:
        context = verifying_context(cadata=login.ca) if login.ca else None
        if context is not None:
            context.sslsocket_class = DeadlineTlsSocket
        self._patience = login.timeout
        self._left = _MOST_BYTES
        self._armed: object = None
        super().__init__(
            defer_connect=True,
            host=login.host,
            port=login.port,
            user=login.user,
            read_timeout=login.timeout,
            write_timeout=login.timeout,
            autocommit=None,
            ssl=context,
            ssl_disabled=context is None,
        )

    def restart_deadline(self) -> None:
        """Give the server its full time for the next answer."""
        self._armed = None

    def _read_bytes(self, num_bytes: int) -> bytes:
        """Read for PyMySQL. Raises _TooLong."""
        self._left -= num_bytes
        if self._left < 0:
            raise _TooLong
        # the TLS handshake replaces the socket
        if self._armed is not self._sock:
            arm(self._sock, self._patience)
            self._armed = self._sock
        read: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]  # its stubs leave it out
        return read


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


@contextlib.contextmanager
def _typed_errors(login: SqlLogin) -> Iterator[None]:
    try:
        yield
    except _TooLong as error:
        what = f"the server sent more than the {_MOST_BYTES} bytes that its answers may have"
        raise AnswerRefused("SQL", login.url, what) from error
    except pymysql.MySQLError as error:
        raise _typed(login, error) from error
    except _NONSENSE as error:
        # these errors quote the server
        what = f"the server does not speak MySQL's protocol ({type(error).__name__})"
        raise ConnectionLost("SQL", login.url, what) from error


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
        case (CR.CR_AUTH_PLUGIN_CANNOT_LOAD | CR.CR_AUTH_PLUGIN_ERR, _):
            # PyMySQL quotes the method's name from the server
            what = "the server asks for a method of authentication that a user without a password cannot answer"
            return ConnectionLost("SQL", login.url, what)
    return ConnectionLost("SQL", login.url, str(error))
