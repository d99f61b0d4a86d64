"""The knowledge of a PD leader at the start of its term: less than its predecessor's (dataplane-apis.md 15.1, 15.2).

It loads persisted data: of stores, their last heartbeat as of some minutes ago, and the list of regions. The regions
then report their leaders one after another. Until all have, PD runs no schedulers.
"""

from sandbox.timings import Timings


class Term:
    """The term of a leader. The callers hold the data plane's lock."""

    def __init__(self, timings: Timings, begun_at: float = float("-inf"), reporting: float = 0.0) -> None:
        """`reporting`: seconds until the leaders of all regions have reported; 0 means the usual."""
        self._loaded_at = begun_at + timings.pd_stores_loaded
        self._begun_at = begun_at
        self._reporting = reporting or timings.pd_regions_reported

    @property
    def prepared_at(self) -> float:
        """The clock time at which PD knows the leaders of all regions and begins to schedule."""
        return self._begun_at + self._reporting

    def is_loading(self, now: float) -> bool:
        """True if the leader has not loaded the stores yet, and knows none."""
        return now < self._loaded_at

    def is_prepared(self, now: float) -> bool:
        """True if the leaders of all regions have reported."""
        return now >= self.prepared_at

    def reported(self, regions: int, now: float) -> int:
        """The number of regions whose leaders have reported; the first ones report first."""
        return regions if self.is_prepared(now) else int(regions * (now - self._begun_at) / self._reporting)
