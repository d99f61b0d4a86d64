"""SQL to a server with MySQL's protocol, as an argument (dataplane-apis.md 6, A10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SqlLogin:
    """A server and a user without a password.

    `timeout` is the seconds for the connection and for each answer. `ca` is the PEM of trusted authorities: if it is
    set, the connection uses TLS and verifies the server's certificate.
    """

    host: str
    port: int
    user: str
    timeout: float = 5.0
    ca: str = ""

    @property
    def url(self) -> str:
        """The server and the user, for messages."""
        return f"mysql://{self.user}@{self.host}:{self.port}"


class SqlRefused(Exception):
    """Raised when the server rejects a login or a statement; `code` is MySQL's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"error {code}: {message}")
        self.code = code
        self.message = message


class SqlConnector(Protocol):
    """Executes SQL. Thread-safe."""

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """Log in, execute statements that return no rows, one after another, and log out.

        Raises SqlRefused, TransportError.
        """
