"""What every process of the data plane needs from the world."""

from dataclasses import dataclass

from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.dataplane.network import Network
from sandbox.timings import Timings


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Time, chance, durations and the network."""

    clock: Clock
    randomness: Randomness
    timings: Timings
    network: Network
