"""The status port of TiFlash's proxy (dataplane-apis.md 7)."""

from dataplane.addresses import Address
from dataplane.calls import Caller
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.transport import Transport

RUNNING = "Running"

_PATH = "/tiflash/store-status"
_STATUSES = ("Idle", "Ready", RUNNING, "Stopping", "Terminated")


class TiFlashClient:
    """One TiFlash. Thread-safe."""

    def __init__(self, transport: Transport, base_url: Address, clock: Clock | None = None) -> None:
        """A client of the TiFlash whose proxy has its status port at `base_url`."""
        self._call = Caller(transport, base_url, OpenFence(), clock or SystemClock())

    def store_status(self) -> str:
        """The start-up state of the store: `Idle`, `Ready`, `Running`, `Stopping` or `Terminated`.

        Raises Unavailable, ApiError.
        """
        answer = self._call.get(_PATH)
        status = answer.body.decode("utf-8", "replace").strip()
        if status not in _STATUSES:
            raise self._call.malformed(_PATH, f"malformed answer: the status is none of {', '.join(_STATUSES)}")
        return status
