"""TiDB's status port (dataplane-apis.md 6)."""

from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import DataPlaneError
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.transport import Transport


class TiDBClient:
    """One TiDB. Safe for use by many threads."""

    def __init__(self, transport: Transport, base_url: str, clock: Clock | None = None) -> None:
        """A client of the TiDB whose status port is at `base_url`."""
        self._call = Caller(transport, base_url, OpenFence(), clock or SystemClock())

    def healthy(self, timeout: float = TIMEOUT) -> bool:
        """Whether TiDB says within `timeout` seconds that it serves. No answer means no; raises no DataPlaneError."""
        try:
            self._call.get("/status", timeout=timeout)
        except DataPlaneError:
            return False
        return True
