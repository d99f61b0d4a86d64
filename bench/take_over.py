"""The time until a standby leads, with the default times of the lease, in the sandbox.

After SIGTERM the lease is released, and the standby's watch notices it; after SIGKILL it has to expire.
"""

import signal
import tempfile
from pathlib import Path
from statistics import median

from bench.figures import note, show
from kube.leader_election import Timing
from tests.e2e.taking_over import take_over_times
from tests.e2e.worlds import Place, sandbox

ROUNDS = 5


def main() -> int:
    """Run both. 1 if one take-over was too late."""
    times = Timing()
    latest = times.lease_duration + 2 * 2.2 * times.retry_period
    with tempfile.TemporaryDirectory() as directory, sandbox(Path(directory)) as place:
        return max(_measure(place, signal.SIGTERM, 2.0), _measure(place, signal.SIGKILL, latest))


def _measure(place: Place, end: signal.Signals, aim: float) -> int:
    times = take_over_times(place, place.environment(), end, rounds=ROUNDS, within=60.0)
    note(f"after {end.name}: {', '.join(f'{each:.2f}' for each in times)} s")
    show(f"take_over_after_{end.name}_median", median(times), aim, "s", "aim")
    show(f"take_over_after_{end.name}_longest", max(times), aim, "s", "aim")
    return int(max(times) > aim)
