"""SQL over MySQL's client protocol, by PyMySQL."""

import contextlib
import ssl
import struct
from collections.abc import Iterator, Sequence
from socket import gaierror

import pymysql
from pymysql.constants import CR

from ports.sql import SqlLogin, SqlRefused
from ports.transport import ConnectionLost, ConnectionRefused, RequestTimeout, TlsError

_OF_CLIENT = range(CR.CR_ERROR_FIRST, CR.CR_ERROR_FIRST + 1000)
"""The codes that a server does not send."""

_NONSENSE = (struct.error, LookupError, ValueError, AssertionError, RuntimeError)
"""What PyMySQL raises for bytes that are no MySQL."""


class MySqlConnector:
    """See `SqlConnector`: over TCP, and TLS where the login says so."""

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """See `SqlConnector`."""
        with _typed_errors(login), contextlib.closing(_connected(login)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def _connected(login: SqlLogin) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    context = ssl.create_default_context(cadata=login.ca) if login.ca else None
    return pymysql.connect(
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
        case ConnectionRefusedError() | gaierror() as cause:
            return ConnectionRefused("SQL", login.url, str(cause))
    match error.args:
        case (int(code), str(message)) if code and code not in _OF_CLIENT:
            return SqlRefused(code, message)
    return ConnectionLost("SQL", login.url, str(error))
