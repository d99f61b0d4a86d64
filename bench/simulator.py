"""The simulator's speed: simulated hours of a checked 3/3/2 cluster at rest per hour of CPU.

Shows the best run and the median: all do the same work, and other load can only slow them down.
"""

import statistics
import time

from bench.figures import note, show
from simulate.engine.plan import Plan
from simulate.run import prepare, run

_REST = Plan(name="rest", budget=2 * 3600.0)
_RUNS = 7
_AIM = 3000.0


def main() -> int:
    """Run it."""
    speeds = [_speed() for _ in range(_RUNS)]
    show("simulated_cluster_hours_per_cpu_hour_best", max(speeds), _AIM, "h", "aim")
    show("simulated_cluster_hours_per_cpu_hour_median", statistics.median(speeds), _AIM, "h", "aim")
    return 0


def _speed() -> float:
    engine = prepare(_REST)
    started = time.process_time()
    outcome = run(engine, _REST)
    spent = time.process_time() - started
    if not outcome.passed:
        raise RuntimeError(f"a cluster at rest: {outcome.violations}")
    note(f"{engine.elapsed / 3600:.2f} h in {spent:.2f} s of CPU")
    return engine.elapsed / spent
