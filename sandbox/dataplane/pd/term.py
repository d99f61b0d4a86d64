"""What a PD leader knows when its term begins: less than the leader before it did (dataplane-apis.md 15.1, 15.2).

It loads what was written down. Of stores that is their last heartbeat as of some minutes ago, and which regions there
are; who leads these is told by the regions, one after another. Until all of them have, PD runs no schedulers.
"""

from sandbox.timings import Timings


class Term:
    """The term of a leader. The callers hold the data plane's lock."""

    def __init__(self, timings: Timings, begun_at: float = float("-inf"), reporting: float = 0.0) -> None:
        """`reporting`: seconds until the leaders of all regions have reported; 0 is what is usual."""
        self._loaded_at = begun_at + timings.pd_stores_loaded
        self._begun_at = begun_at
        self._reporting = reporting or timings.pd_regions_reported

    @property
    def prepared_at(self) -> float:
        """The clock time at which PD knows the leaders of all regions and begins to schedule."""
        return self._begun_at + self._reporting

    def is_loading(self, now: float) -> bool:
        """Whether the leader has yet to load the stores, and knows of none."""
        return now < self._loaded_at

    def is_prepared(self, now: float) -> bool:
        """Whether the leaders of all regions have reported."""
        return now >= self.prepared_at

    def reported(self, regions: int, now: float) -> int:
        """How many of so many regions have told who leads them; it is the first ones."""
        return regions if self.is_prepared(now) else int(regions * (now - self._begun_at) / self._reporting)
