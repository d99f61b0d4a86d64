"""For debugging: compare caches with the server periodically, and end the process at a difference (REF-40h)."""

from collections.abc import Callable, Iterable, Mapping

import structlog

from informers.factory import SharedInformerFactory
from kube.errors import ApiError
from ports.clock import Clock
from ports.stopping import Stop
from ports.transport import TransportError

log = structlog.get_logger(__name__)

SWITCH = "KUBE_WATCHLIST_INCONSISTENCY_DETECTOR"
"""The environment variable, as client-go names it; `true` turns it on."""

PERIOD = 60.0
"""Seconds between two comparisons, each of which lists every cached resource."""


def is_switched_on(environ: Mapping[str, str]) -> bool:
    """True if the environment variable is `true`."""
    return environ.get(SWITCH, "").lower() in ("1", "t", "true")


class InconsistencyDetector:
    """Compares the caches of some factories with lists at the versions of these caches."""

    def __init__(
        self, factories: Iterable[SharedInformerFactory], clock: Clock, on_difference: Callable[[], None]
    ) -> None:
        """The detector logs a difference and then calls `on_difference`."""
        self._factories = tuple(factories)
        self._clock = clock
        self._on_difference = on_difference

    def run(self, stop: Stop) -> None:
        """Compare every `PERIOD` seconds until stopped."""
        while not stop.wait(self._clock, PERIOD):
            self.step()

    def step(self) -> None:
        """Compare each synced cache once."""
        for factory in self._factories:
            try:
                differences = factory.check_consistency()
            except (ApiError, TransportError) as error:
                # e.g. the server has compacted this version: the next comparison uses a newer one
                log.info("caches could not be compared", cause=str(error))
                continue
            for resource, difference in differences.items():
                if difference:
                    log.error("cache differs from the API server", resource=str(resource), difference=str(difference))
                    self._on_difference()
