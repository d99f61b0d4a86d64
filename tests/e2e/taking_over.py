"""How long the Lease has no working owner after its holder ends, by the manner of its end."""

import contextlib
import signal
from collections.abc import Mapping

from tests.e2e import operators
from tests.e2e.operators import Operator
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import Place


def take_over_times(
    place: Place, environment: Mapping[str, str], end: signal.Signals, *flags: str, rounds: int, within: float
) -> list[float]:
    """Seconds from `end` being sent to an idle leader until its standby leads; the standby is the next leader."""
    times = []
    with contextlib.ExitStack() as running:

        def start() -> Operator:
            return running.enter_context(operators.running(place.new_log(), environment, *flags))

        leader = start()
        eventually(lambda: leads(leader))
        for _ in range(rounds):
            standby = start()
            eventually(lambda standby=standby: stands_by(standby))  # type: ignore[misc]
            sent = CLOCK.now()
            leader.signal(end)
            eventually(lambda standby=standby: leads(standby), within)  # type: ignore[misc]
            times.append(CLOCK.now() - sent)
            leader.wait()
            leader = standby
    return times


def leads(operator: Operator) -> bool:
    """True if it has become the leader."""
    return operator.has_said(event="leader election", outcome="became leader")


def stands_by(operator: Operator) -> bool:
    """True if it has met a leader, and its caches are full."""
    return operator.has_said(event="new leader") and operator.page("/readyz")[0] == 200
