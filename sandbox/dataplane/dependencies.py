"""What every process of the data plane needs from the world."""

from dataclasses import dataclass, field

from ports.clock import Clock
from ports.randomness import Randomness
from sandbox.dataplane.network import Network
from sandbox.timings import Timings


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Time, chance, durations and the network.

    `interrupted_joins`: a fault, globs of `namespace/pod`: such PDs end after PD has added them as a member, before
    they write it down. `last_calls`: another one: processes of commands in such pods (globs) end right after they have
    reached somebody outside for the n-th time, once.
    """

    clock: Clock
    randomness: Randomness
    timings: Timings
    network: Network
    interrupted_joins: set[str] = field(default_factory=set)
    last_calls: dict[str, int] = field(default_factory=dict)
