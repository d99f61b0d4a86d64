"""The queue that every controller has."""

import pytest
from prometheus_client import CollectorRegistry

from controllers.queues import REST, controller_queue
from ports.clock import FakeClock
from workqueue.metrics import PrometheusQueueMetrics
from workqueue.timers import Timers


@pytest.mark.rule("RL-7")
def test_retries_begin_after_a_second_and_end_at_a_hundred(clock: FakeClock) -> None:
    timers = Timers(clock)
    queue = controller_queue("tidbcluster", timers)
    delays = []
    for _ in range(9):
        queue.add_rate_limited("ns/basic")
        due = timers.next_due()
        assert due is not None
        delays.append(due - clock.now())
        clock.step(delays[-1])
        timers.fire_due()
        queue.done(str(queue.get()[0]))

    assert [1, 2, 4, 8, 16, 32, 64, 100, 100] == pytest.approx(delays)


@pytest.mark.rule("RL-9")
def test_the_shared_rate_limit_counts_its_waits(clock: FakeClock) -> None:
    waits: list[float] = []
    queue = controller_queue("tidbcluster", Timers(clock), on_throttled=waits.append)

    for number in range(101):
        queue.add_rate_limited(f"ns/{number}")

    assert [0.1] == pytest.approx(waits)


def test_the_queue_reports_under_its_name(clock: FakeClock) -> None:
    registry = CollectorRegistry()
    controller_queue("tidbcluster", Timers(clock), metrics=PrometheusQueueMetrics(registry)).add("ns/basic")

    assert 1 == registry.get_sample_value("workqueue_depth", {"name": "tidbcluster", "priority": "0"})


@pytest.mark.rule("R13")
def test_a_key_whose_syncs_cause_the_next_event_is_synced_once_a_second(clock: FakeClock) -> None:
    """As when two processes write one status in turn, or a failure is another one each time."""
    timers = Timers(clock)
    queue = controller_queue("tidbcluster", timers, rest=REST)
    queue.add("ns/basic")
    syncs = 0
    while clock.now() < 60.0:
        timers.fire_due()
        if len(queue):
            key = str(queue.get()[0])
            queue.add_rate_limited(key)
            queue.add(key)
            queue.done(key)
            syncs += 1
        clock.step(0.1)
    assert 59 <= syncs <= 61
