"""SQL to a server that speaks MySQL's protocol, as an argument (dataplane-apis.md 6, A10)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SqlLogin:
    """Which server, and as which user, who has no password.

    `timeout` is in seconds, for the connection and for each answer. `ca` are certificates in PEM: with
    them the connection is TLS and the server's certificate is verified.
    """

    host: str
    port: int
    user: str
    timeout: float = 5.0
    ca: str = ""

    @property
    def url(self) -> str:
        """For messages."""
        return f"mysql://{self.user}@{self.host}:{self.port}"


class SqlRefused(Exception):
    """Raised when the server answers a login or a statement with an error; `code` is MySQL's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"error {code}: {message}")
        self.code = code
        self.message = message


class SqlConnector(Protocol):
    """Carries statements out. Safe for use by many threads."""

    def execute(self, login: SqlLogin, statements: Sequence[str]) -> None:
        """Log in, carry out statements that return no rows, one after another, and leave.

        Raises SqlRefused, TransportError.
        """
