"""TiDB's variables over SQL, as an argument, and its implementation with PyMySQL (backup.md 7.3)."""

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pymysql

from ports.tls import verifying_context

CLIENT_TLS = Path("/var/lib/tidb-client-tls")
"""The directory where the Job mounts the certificates of SQL clients."""

_TIMEOUT = 25
"""Seconds for a connection and for each answer."""


@dataclass(frozen=True, slots=True)
class Login:
    """A server, a user, and the certificates: a directory and its Secret; none without TLS."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Path | None = None
    verifies: bool = True
    secret: str = ""

    def __str__(self) -> str:
        """The server and the user, for messages."""
        by = f" (TLS by Secret {self.secret})" if self.secret else ""
        return f"{self.user}@{self.host}:{self.port}{by}"


class DatabaseError(Exception):
    """Raised if TiDB does not answer, or refuses."""


class Database(Protocol):
    """Reads and sets TiDB's variables in `mysql.tidb`. Each call opens its own connection."""

    def ping(self) -> None:
        """Log in and out. Raises DatabaseError."""

    def variable(self, name: str) -> str:
        """The value of a variable. Raises DatabaseError."""

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable. Raises DatabaseError."""


class MySqlDatabase:
    """Implements `Database` over MySQL's protocol, with TLS if the login has certificates."""

    def __init__(self, login: Login) -> None:
        self._login = login

    def ping(self) -> None:
        with self._cursor():
            pass

    def variable(self, name: str) -> str:
        with self._cursor() as cursor:
            cursor.execute("SELECT variable_value FROM tidb WHERE variable_name = %s", (name,))
            row = cursor.fetchone()
        if row is None:
            raise DatabaseError(f"{self._login}: mysql.tidb has no {name}; is it TiDB that answers?")
        return str(row[0])

    def set_variable(self, name: str, value: str) -> None:
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
                # PyMySQL would send a text as Latin-1
                password=login.password.encode(),
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
    """The server's code and text, or the system's error."""
    return ": ".join(str(part) for part in error.args if part) or type(error).__name__
