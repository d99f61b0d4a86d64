"""A connection of PyMySQL to a server that is not trusted (docs/security.md).

The server's bytes in one login have a maximum, and the handshake and each answer have a deadline.
"""

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Iterator

import pymysql
from pymysql.constants import CR

from ports.deadlines import DeadlineTlsSocket, arm
from ports.sql import SqlLogin, SqlRefused
from ports.tls import verifying_context
from ports.transport import AnswerRefused, ConnectionLost, ConnectionRefused, RequestTimeout, TlsError

_OF_CLIENT = range(CR.CR_ERROR_FIRST, CR.CR_ERROR_FIRST + 1000)
"""Error codes of the client library, which a server does not send."""

_NONSENSE = (struct.error, LookupError, ValueError, AssertionError, RuntimeError)
"""The exceptions of PyMySQL for bytes that are not MySQL's protocol."""

_MOST_BYTES = 1 << 16
"""The maximum that a server may send in one login, in bytes. A greeting, and an OK or an error per statement, take
hundreds.
"""


@contextlib.contextmanager
def connected(login: SqlLogin, dial: Callable[[], socket.socket]) -> Iterator[Callable[[str], None]]:
    """Log in through the socket that `dial` opens, and yield a function that executes one statement.

    Raises TransportError and SqlRefused, as `SqlConnector` does.
    """
    with _typed_errors(login), contextlib.closing(_Bounded(login)) as connection:
        connection.connect(dial())
        with connection.cursor() as cursor:

            def execute(statement: str) -> None:
                connection.restart_deadline()
                cursor.execute(statement)

            yield execute


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
