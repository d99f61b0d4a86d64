"""The API of PD microservices (dataplane-apis.md 3.4)."""

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.errors import ApiError
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.transport import Transport


class PDMSClient:
    """One member of a microservice. Thread-safe.

    tso has no such API before v8.0, scheduling has no `health`. PD lets only some members of tso serve, e.g. one of
    three; the others answer both calls with 503.
    """

    def __init__(
        self,
        transport: Transport,
        base_url: Address,
        service: str,
        clock: Clock | None = None,
        fence: Fence | None = None,
    ) -> None:
        """A client of the member of `service`, e.g. `tso`, at `base_url`."""
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock())
        self._service = service

    def healthy(self) -> bool:
        """True if the member has a primary. Raises Unavailable."""
        try:
            self._call.get(f"/{self._service}/api/v1/health")
        except ApiError:
            return False
        return True

    def transfer_primary(self, name: str) -> None:
        """Ask PD to make the named member the primary; needs v8.3.0.

        Raises Conflict if the member does not serve or is gone; Unavailable, ApiError, LeaseExpired.
        """
        path, about = f"/{self._service}/api/v1/primary/transfer", {"service": self._service, "to": name}
        self._call.write("POST", path, {"new_primary": name}, done="primary transfer begun", about=about)
