"""TiKV's status port (dataplane-apis.md 5)."""

import re

from dataplane.calls import Caller
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.transport import Transport

_LEADERS = re.compile(rb'^tikv_raftstore_region_count\{[^}\n]*\btype="leader"[^}\n]*\}\s+(\S+)', re.MULTILINE)


class TiKVClient:
    """One TiKV. Safe for use by many threads."""

    def __init__(self, transport: Transport, base_url: str, clock: Clock | None = None) -> None:
        """A client of the TiKV whose status port is at `base_url`."""
        self._call = Caller(transport, base_url, OpenFence(), clock or SystemClock())

    def status(self) -> None:
        """Ask for nothing but an answer. Raises Unavailable, ApiError."""
        self._call.get("/status")

    def leader_count(self) -> int:
        """How many regions this TiKV leads, from its own metrics. Raises Unavailable, ApiError."""
        answer = self._call.get("/metrics")
        sample = _LEADERS.search(answer.body)
        if sample is None:
            reason = 'tikv_raftstore_region_count{type="leader"} is missing'
            raise self._call.malformed("/metrics", answer, reason)
        try:
            # large counts are printed as 1.234567e+06
            return int(float(sample[1]))
        except (ValueError, OverflowError) as error:
            raise self._call.malformed("/metrics", answer, f"tikv_raftstore_region_count: {error}") from error
