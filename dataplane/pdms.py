"""A PD microservice's own API (dataplane-apis.md 3.4)."""

from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.errors import ApiError
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.transport import Transport


class PDMSClient:
    """One member of a microservice. Safe for use by many threads.

    tso has no such API before v8.0, scheduling no `health`. A member of tso that PD does not have serve, as of three
    members one, answers both calls with 503.
    """

    def __init__(
        self,
        transport: Transport,
        base_url: Address,
        service: str,
        clock: Clock | None = None,
        fence: Fence | None = None,
    ) -> None:
        """A client of the member of `service`, such as `tso`, at `base_url`."""
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock())
        self._service = service

    def healthy(self) -> bool:
        """Whether it has a primary. Raises Unavailable."""
        try:
            self._call.get(f"/{self._service}/api/v1/health")
        except ApiError:
            return False
        return True

    def transfer_primary(self, name: str) -> None:
        """Ask that the member of this name becomes the primary; only v8.3.0 and later can.

        Raises Conflict where PD does not have that member serve, or it is gone; Unavailable, ApiError, LeaseExpired.
        """
        path, about = f"/{self._service}/api/v1/primary/transfer", {"service": self._service, "to": name}
        self._call.write("POST", path, {"new_primary": name}, done="primary transfer begun", about=about)
