"""TiDB's variables over SQL, as an argument; and by PyMySQL (backup.md 7.3)."""

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pymysql

from ports.tls import verifying_context

CLIENT_TLS = Path("/var/lib/tidb-client-tls")
"""Where the Job mounts the certificates of SQL clients."""

_TIMEOUT = 25
"""Seconds for a connection and for each answer."""


@dataclass(frozen=True, slots=True)
class Login:
    """Which server, as whom, and by which certificates: a directory, and the Secret that it has; none without TLS."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Path | None = None
    verifies: bool = True
    secret: str = ""

    def __str__(self) -> str:
        """For messages."""
        by = f" (TLS by Secret {self.secret})" if self.secret else ""
        return f"{self.user}@{self.host}:{self.port}{by}"


class DatabaseError(Exception):
    """Raised when TiDB does not answer, or refuses."""


class Database(Protocol):
    """Reads and sets variables of TiDB that stand in `mysql.tidb`. Each call is a connection of its own."""

    def ping(self) -> None:
        """Log in and leave. Raises DatabaseError."""

    def variable(self, name: str) -> str:
        """A variable's value. Raises DatabaseError."""

    def set_variable(self, name: str, value: str) -> None:
        """Give a variable another value. Raises DatabaseError."""


class MySqlDatabase:
    """See `Database`: over MySQL's protocol, and TLS where the login says so."""

    def __init__(self, login: Login) -> None:
        self._login = login

    def ping(self) -> None:
        """See `Database`."""
        with self._cursor():
            pass

    def variable(self, name: str) -> str:
        """See `Database`."""
        with self._cursor() as cursor:
            cursor.execute("SELECT variable_value FROM tidb WHERE variable_name = %s", (name,))
            row = cursor.fetchone()
        if row is None:
            raise DatabaseError(f"{self._login}: mysql.tidb has no {name}; is it TiDB that answers?")
        return str(row[0])

    def set_variable(self, name: str, value: str) -> None:
        """See `Database`."""
        with self._cursor() as cursor:
            cursor.execute("UPDATE tidb SET variable_value = %s WHERE variable_name = %s", (value, name))

    @contextlib.contextmanager
    def _cursor(self) -> Iterator["pymysql.cursors.Cursor"]:
        login = self._login
        try:
            connection = pymysql.connect(
                host=login.host,
                port=login.port,
                user=login.user,
                password=login.password,
                database="mysql",
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=_TIMEOUT,
                read_timeout=_TIMEOUT,
                write_timeout=_TIMEOUT,
                ssl=_context(login),
                ssl_disabled=login.tls is None,
            )
            with contextlib.closing(connection), connection.cursor() as cursor:
                yield cursor
        except (pymysql.MySQLError, OSError) as error:
            raise DatabaseError(f"{login}: {_cause(error)}") from None


def _context(login: Login) -> ssl.SSLContext | None:
    if login.tls is None:
        return None
    context = verifying_context(cafile=str(login.tls / "ca.crt") if login.verifies else None)
    if not login.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(login.tls / "tls.crt", login.tls / "tls.key")
    return context


def _cause(error: Exception) -> str:
    """The server's code and text, or the system's."""
    return ": ".join(str(part) for part in error.args if part) or type(error).__name__
