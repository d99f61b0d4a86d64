"""The intervals between checks."""

from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from kube.objects import Json
from member.context import Dependencies, ReconcileContext
from member.polling import next_poll, poll_on_progress, time_left
from ports.clock import FakeClock
from tests.member.clusters import cluster
from tests.member.reconciling import as_object


def look(clock: FakeClock, *conditions: Json) -> float:
    tc = cluster(status={"tikv": {"conditions": list(conditions)}})
    deps = cast("Dependencies", SimpleNamespace(clock=clock, listers=None))
    return next_poll(ReconcileContext(as_object({"metadata": {"name": "demo"}}), tc, deps), "tikv")


def progressing(clock: FakeClock, seconds: float, status: str = "True") -> Json:
    since = clock.wall() - timedelta(seconds=seconds)
    return {"type": "Progressing", "status": status, "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ")}


@pytest.mark.parametrize(
    ("age", "expected"), [(0, 0.5), (3, 0.5), (20, 2.0), (60, 6.0), (86400, 10.0), (-1, 0.5), (-86400, 10.0)]
)
def test_checks_become_rarer_the_longer_a_wait_lasts(clock: FakeClock, age: float, expected: float) -> None:
    assert expected == look(clock, progressing(clock, age))


def test_a_refused_stage_is_checked_as_rarely_as_a_running_one(clock: FakeClock) -> None:
    assert 10.0 == look(clock, progressing(clock, 600, "False") | {"reason": "PDQuorum"})


def test_a_new_wait_is_checked_soon(clock: FakeClock) -> None:
    assert 0.5 == look(clock)
    assert 0.5 == look(clock, progressing(clock, 600, "False") | {"reason": "Done"})
    assert 0.5 == look(clock, {"type": "Progressing", "status": "True", "lastTransitionTime": "yesterday"})


@pytest.mark.parametrize(
    ("begun", "left", "age", "expected"),
    [
        # 100 in 10 s: another 20 s to go
        (300, 200, 10.0, 10.0),
        (300, 100, 20.0, 5.0),
        (300, 10, 29.0, 0.5),
        (3000, 10, 3000.0, 5.0),
        # no progress, or unknown progress
        (300, 300, 60.0, 6.0),
        (300, 310, 600.0, 10.0),
        (300, 0, 10.0, 1.0),
    ],
)
def test_a_countdown_is_checked_when_half_of_the_rest_is_done(
    begun: int, left: int, age: float, expected: float
) -> None:
    assert expected == pytest.approx(poll_on_progress(begun, left, age), rel=0.01)


@pytest.mark.parametrize(("age", "expected"), [(0, 300.0), (100, 200.0), (400, 0.0), (-2, 298.0), (-86400, 0.0)])
@pytest.mark.rule("F44")
def test_a_time_in_the_future_delays_no_check(clock: FakeClock, age: float, expected: float) -> None:
    since = (clock.wall() - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert expected == time_left(since, 300.0, clock.wall())


def test_an_invalid_time_delays_no_check(clock: FakeClock) -> None:
    assert 0.0 == time_left("yesterday", 300.0, clock.wall())
