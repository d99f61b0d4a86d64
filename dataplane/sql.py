"""TiDB's SQL port, used to set root's first password (dataplane-apis.md 6, A10)."""

import structlog

from dataplane.errors import ApiError, unavailable
from ports import effects
from ports.fencing import Fence
from ports.foreign_text import shortened
from ports.sql import SqlConnector, SqlLogin, SqlRefused
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

_ACCESS_DENIED = 1045


class AccessDenied(Exception):
    """Raised when the user already has a password."""


class RootClient:
    """One TiDB, or the Service in front of all, as root without a password."""

    def __init__(self, connector: SqlConnector, login: SqlLogin, fence: Fence) -> None:
        self._connector = connector
        self._login = login
        self._fence = fence

    def set_password(self, password: str) -> None:
        """Set root's password. Raises AccessDenied if root has one; Unavailable, ApiError, LeaseExpired."""
        self._fence.check()
        effects.note()
        # MySQL cannot bind a parameter in this statement
        statements = [f"SET PASSWORD FOR 'root'@'%' = {quoted(password)}", "FLUSH PRIVILEGES"]
        try:
            self._connector.execute(self._login, statements)
        except SqlRefused as refused:
            if refused.code == _ACCESS_DENIED:
                raise AccessDenied(f"{self._login.url}: root has a password already") from refused
            # a syntax error repeats the statement
            message = shortened(refused.message.replace(password, "(the password)"))
            reason = f"error {refused.code}: {message}"
            raise ApiError("SQL", self._login.url, refused.code, b"", reason) from None
        except TransportError as error:
            raise unavailable(error) from error
        _log.info("root password set", server=self._login.host)


def quoted(text: str) -> str:
    """A text as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
