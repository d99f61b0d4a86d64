"""The dependencies of every process on the world."""

from dataclasses import dataclass, field

from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.dataplane.network import Network
from sandbox.timings import Timings


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Time, randomness, durations and the network.

    `interrupted_joins` is a fault, globs of `namespace/pod`: such PDs end after PD has added them as members, before
    they record it. `last_calls` is another: commands in such pods end right after their n-th external call, once.
    """

    clock: Clock
    randomness: Randomness
    timings: Timings
    network: Network
    interrupted_joins: set[str] = field(default_factory=set)
    last_calls: dict[str, int] = field(default_factory=dict)
