"""TiKV's status port (dataplane-apis.md 5)."""

import re

from dataplane.addresses import Address
from dataplane.calls import Caller
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.transport import Transport

_LEADERS = re.compile(rb'^tikv_raftstore_region_count\{[^}\n]*\btype="leader"[^}\n]*\}\s+(\S+)', re.MULTILINE)


_LONGEST_METRICS = 8 << 20
"""Bytes. A busy TiKV writes one to three million, about 150 per series."""

_MOST_REGIONS = 2**63


class TiKVClient:
    """One TiKV. Thread-safe."""

    def __init__(self, transport: Transport, base_url: Address, clock: Clock | None = None) -> None:
        """A client of the TiKV whose status port is at `base_url`."""
        self._call = Caller(transport, base_url, OpenFence(), clock or SystemClock())

    def status(self) -> None:
        """Check that TiKV answers. Raises Unavailable, ApiError."""
        self._call.get("/status")

    def leader_count(self) -> int:
        """The number of regions that this TiKV leads, from its own metrics. Raises Unavailable, ApiError."""
        answer = self._call.get("/metrics", longest=_LONGEST_METRICS)
        sample = _LEADERS.search(answer.body)
        if sample is None:
            reason = 'tikv_raftstore_region_count{type="leader"} is missing'
            raise self._call.malformed("/metrics", f"malformed answer: {reason}")
        try:
            # large counts are printed as 1.234567e+06
            count = int(float(sample[1]))
        except (ValueError, OverflowError):
            count = -1
        if not 0 <= count < _MOST_REGIONS:
            raise self._call.malformed(
                "/metrics", "malformed answer: tikv_raftstore_region_count is no number of regions"
            )
        return count
