"""Leadership passes to a standby at once when it is handed over, and when the lease has run out when it is not."""

import signal
from statistics import median

import pytest

from kube.leader_election import Timing
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.operators import QUICK_LEASE
from tests.e2e.taking_over import take_over_times
from tests.e2e.worlds import Place

pytestmark = [pytest.mark.slow, IN_ONE_WORLD]

_QUICK = Timing(2.0, 1.5, 0.3)
"""The durations of QUICK_LEASE."""
_LOOKING = 0.5
"""Seconds by which a loaded machine may see an event late."""


def _show(times: list[float]) -> None:
    print(f"take-over: {[round(each, 2) for each in times]}, median {median(times):.2f} s")  # noqa: T201


@pytest.mark.rule("LE-13", "LE-19")
def test_after_SIGTERM_an_idle_leader_is_replaced_within_two_seconds(place: Place) -> None:
    # polling would take up to 4.4 s
    times = take_over_times(place, place.environment(), signal.SIGTERM, rounds=3, within=10.0)

    _show(times)
    assert median(times) <= 2.0


@pytest.mark.rule("LE-13")
def test_after_SIGKILL_a_leader_is_replaced_when_its_lease_has_run_out(place: Place) -> None:
    latest = _QUICK.lease_duration + 2 * 2.2 * _QUICK.retry_period

    times = take_over_times(place, place.environment(), signal.SIGKILL, *QUICK_LEASE, rounds=3, within=latest + 5.0)

    _show(times)
    assert _QUICK.lease_duration - _QUICK.retry_period - _LOOKING < min(times)
    assert median(times) <= latest + _LOOKING
