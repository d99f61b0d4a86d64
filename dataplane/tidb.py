"""TiDB's status port (dataplane-apis.md 6)."""

from collections.abc import Mapping

import msgspec

from dataplane.addresses import Address
from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import ApiError, DataPlaneError
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.structs import UNREADABLE, decoder
from ports.transport import Response, Transport

_START_TIMEOUT = 30.0
"""Seconds. TiDB itself waits up to 10 s for the state to change."""

_DONE = "success!"
_DUPLICATED = "It's a duplicated operation and the cluster is already in {} state."


class _Info(msgspec.Struct):
    """The fields of `/info` that the operator reads."""

    labels: dict[str, str] | None = None


class TiDBClient:
    """One TiDB. Thread-safe."""

    def __init__(
        self, transport: Transport, base_url: Address, clock: Clock | None = None, fence: Fence | None = None
    ) -> None:
        """A client of the TiDB whose status port is at `base_url`."""
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock())

    def healthy(self, timeout: float = TIMEOUT) -> bool:
        """True if TiDB reports within `timeout` seconds that it serves. No answer means False; raises no
        DataPlaneError.
        """
        try:
            self._call.get("/status", timeout=timeout)
        except DataPlaneError:
            return False
        return True

    def set_labels(self, labels: Mapping[str, str]) -> None:
        """Add labels that the server lacks; its other labels stay.

        Raises Unavailable, ApiError, MalformedAnswer, LeaseExpired.
        """
        known = self._call.get_json("/info", decoder(_Info)).labels or {}
        if labels.items() <= known.items():
            return
        about = {"server": self._call.host, "labels": dict(labels)}
        self._call.write("POST", "/labels", dict(labels), done="labels of a TiDB server set", about=about)

    def start_upgrade(self) -> None:
        """Pause the users' DDL in the whole cluster until `finish_upgrade`. Idempotent.

        May take up to 30 s. Raises Unavailable, ApiError, LeaseExpired.
        """
        self._switch("start", "upgrading", _START_TIMEOUT, "TiDB asked to pause DDL")

    def finish_upgrade(self) -> None:
        """Resume the users' DDL. Idempotent. Raises Unavailable, ApiError, LeaseExpired."""
        self._switch("finish", "normal", TIMEOUT, "TiDB asked to resume DDL")

    def _switch(self, verb: str, state: str, timeout: float, done: str) -> None:
        path = f"/upgrade/{verb}"
        answer = self._call.write("POST", path, timeout=timeout, done=done, about={"server": self._call.host})
        if _text(answer) not in (_DONE, _DUPLICATED.format(state)):
            raise ApiError("POST", self._call.base_url + path, answer.status, answer.body, "TiDB refused")


def _text(answer: Response) -> str:
    """The text of an answer, which TiDB writes as a JSON string or bare."""
    bare = answer.body.decode("utf-8", "replace").strip()
    try:
        return decoder(str).decode(answer.body)
    except UNREADABLE:
        return bare
