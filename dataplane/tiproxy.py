"""TiProxy's API (dataplane-apis.md 9)."""

import json
from collections.abc import Mapping

from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import DataPlaneError

API_PORT = 3080
SQL_PORT = 6000
PEER_PORT = 3081

_SERVES = 200


class TiProxyClient:
    """One TiProxy. Safe for use by many threads."""

    def __init__(self, caller: Caller) -> None:
        """A client of the TiProxy whose API `caller` reaches."""
        self._call = caller

    def health(self, timeout: float = TIMEOUT) -> str | None:
        """What it says of itself if it serves, as text; None when it does not, or gives no answer in time.

        One that is closing answers 502 until it has ended. Raises no DataPlaneError.
        """
        try:
            answer = self._call.get("/api/debug/health", timeout=timeout)
        except DataPlaneError:
            return None
        return answer.body.decode("utf-8", "replace") if answer.status == _SERVES else None

    def set_labels(self, labels: Mapping[str, str]) -> None:
        """Set labels of the server; its other settings stay. Raises Unavailable, ApiError, LeaseExpired."""
        # a TOML key in quotes may have dots, and JSON's strings are TOML's
        lines = (f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in labels.items())
        body = ("[labels]\n" + "".join(lines)).encode()
        about = {"server": self._call.host, "labels": dict(labels)}
        self._call.write("PUT", "/api/admin/config/", body, done="labels of a TiProxy set", about=about)
