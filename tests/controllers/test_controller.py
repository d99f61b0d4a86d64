"""The engine: workers, retries, the end."""

import math
import threading
from asyncio import CancelledError
from collections.abc import Callable
from concurrent.futures import wait

import pytest
from prometheus_client import CollectorRegistry
from pytest_mock import MockerFixture
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs
from structlog.typing import EventDict

from controllers.controller import Controller, Result, Sync
from controllers.errors import IgnoreError, RequeueError
from controllers.metrics import ControllerMetrics
from controllers.queues import controller_queue
from ports.clock import FakeClock
from ports.fencing import LeaseExpired
from ports.stopping import Stop
from tests.workqueue.background import DEADLINE, in_background
from workqueue.priority_queue import PriorityQueue
from workqueue.timers import Timers

KEY = "ns/basic"


class World:
    """A controller whose sync a test scripts, and its effects."""

    def __init__(self, clock: FakeClock, sync: Sync, is_slow: Callable[[str], bool] = lambda _: False) -> None:
        self.clock = clock
        self.timers = Timers(clock)
        self.registry = CollectorRegistry()
        self.queue: PriorityQueue[str] = controller_queue("tidbcluster", self.timers)
        self.controller = Controller(
            "tidbcluster",
            self.queue,
            sync,
            clock=clock,
            metrics=ControllerMetrics(self.registry).of("tidbcluster"),
            drain_timeout=30,
            is_slow=is_slow,
        )
        self.logs: list[EventDict] = []

    def sync(self, key: str = KEY) -> None:
        """Add a key and process it."""
        self.queue.add(key)
        with capture_logs() as logs:
            assert self.controller.process_ready_item()
        self.logs = logs

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"controller": "tidbcluster"} | labels)

    def results(self) -> dict[str, float | None]:
        names = ("success", "requeue", "error")
        return {name: self.metric("controller_runtime_reconcile_total", result=name) for name in names}

    def due_in(self) -> float | None:
        """Seconds until the next retry."""
        due = self.timers.next_due()
        return None if due is None else due - self.clock.now()


def raising(*errors: Exception | None) -> Sync:
    """A sync that fails with one error after the other; None succeeds."""
    script = iter(errors)

    def sync(_key: str) -> None:
        if error := next(script):
            raise error

    return sync


@pytest.mark.rule("CW-5")
def test_success_forgets_the_failures(clock: FakeClock) -> None:
    world = World(clock, raising(ValueError("bad"), None))
    world.sync()
    assert 1 == world.queue.num_requeues(KEY)

    world.sync()
    assert 0 == world.queue.num_requeues(KEY)
    assert {"success": 1, "requeue": 0, "error": 1} == world.results()


@pytest.mark.rule("CW-5")
def test_a_sync_that_has_tried_nothing_forgets_no_failure(clock: FakeClock) -> None:
    fails = iter([True, False, True])

    def sync(_key: str) -> Result:
        if next(fails):
            raise ValueError("bad")
        return Result(requeue_after=1.5, tried=False)

    world = World(clock, sync)
    for failures in (1, 1, 2):
        world.sync()
        assert failures == world.queue.num_requeues(KEY)


@pytest.mark.rule("CW-5")
def test_a_failure_is_retried_ever_later_and_logged_with_its_stack(clock: FakeClock) -> None:
    world = World(clock, raising(ValueError("bad"), ValueError("bad")))

    world.sync()
    assert 1.0 == world.due_in()
    assert [("error", "sync failed, requeuing")] == [(log["log_level"], log["event"]) for log in world.logs]
    assert "bad" == str(world.logs[0]["exc_info"])

    clock.step(1)
    world.timers.fire_due()
    assert world.controller.process_ready_item()
    assert 2.0 == world.due_in()
    assert 2 == world.metric("controller_runtime_reconcile_errors_total")


@pytest.mark.rule("CW-5")
def test_a_write_after_the_lease_was_lost_is_one_line_without_a_stack(clock: FakeClock) -> None:
    world = World(clock, raising(LeaseExpired("the lease expired 2 s ago")))

    world.sync()

    (line,) = world.logs
    assert ("the lease expired 2 s ago", False) == (line["reason"], "exc_info" in line)
    assert 1.0 == world.due_in()


@pytest.mark.rule("CW-5")
def test_an_expected_wait_is_retried_quietly(clock: FakeClock) -> None:
    world = World(clock, raising(RequeueError("Waiting", "waiting for PD cluster running")))

    world.sync()

    assert 1.0 == world.due_in()
    assert [("debug", "waiting for PD cluster running")] == [(log["log_level"], log["reason"]) for log in world.logs]
    assert {"success": 0, "requeue": 1, "error": 0} == world.results()
    assert 0 == world.metric("controller_runtime_reconcile_errors_total")


@pytest.mark.rule("1.3")
def test_a_wait_with_its_own_delay_resets_the_failures(clock: FakeClock) -> None:
    world = World(clock, raising(ValueError("bad"), RequeueError("Waiting", "evicting leaders", after=0.5)))
    world.sync()

    world.sync()

    assert 0.5 == world.due_in()
    assert 0 == world.queue.num_requeues(KEY)


@pytest.mark.rule("CW-5")
def test_an_ignored_key_is_forgotten_and_not_retried(clock: FakeClock) -> None:
    world = World(clock, raising(IgnoreError("on purpose")))

    world.sync()

    assert world.due_in() is None
    assert 0 == world.queue.num_requeues(KEY)
    assert ["debug"] == [log["log_level"] for log in world.logs]
    assert {"success": 1, "requeue": 0, "error": 0} == world.results()


@pytest.mark.rule("CW-5")
def test_a_result_requests_another_sync(clock: FakeClock) -> None:
    world = World(clock, lambda _key: Result(requeue_after=12))

    world.sync()

    assert 12 == world.due_in()
    assert {"success": 1, "requeue": 0, "error": 0} == world.results()


@pytest.mark.parametrize("after", [None, 0, 0.0, -1, -math.inf, math.inf])
@pytest.mark.rule("CW-5")
def test_a_result_without_a_time_requests_no_sync(clock: FakeClock, after: float | None) -> None:
    world = World(clock, lambda _key: Result(requeue_after=after))

    world.sync()

    assert (None, (None, False)) == (world.due_in(), world.queue.try_get())
    assert {"success": 1, "requeue": 0, "error": 0} == world.results()


@pytest.mark.parametrize("after", [0, -1, math.nan, math.inf])
@pytest.mark.rule("CW-5")
def test_a_wait_that_names_no_time_backs_off(clock: FakeClock, after: float) -> None:
    world = World(clock, raising(*[RequeueError("Waiting", "wait", after=after)] * 2))

    world.sync()
    assert 1.0 == world.due_in()
    world.sync()
    assert 2.0 == world.due_in()


@pytest.mark.rule("CW-5")
def test_a_result_that_is_no_number_is_an_error_of_the_sync(clock: FakeClock) -> None:
    world = World(clock, lambda _key: Result(requeue_after=math.nan))

    world.sync()

    assert 1.0 == world.due_in()
    assert "requeue_after in seconds must be a number, not nan" == str(world.logs[0]["exc_info"])


@pytest.mark.parametrize(
    "sync", [lambda _key: Result(requeue_after=1e-9), raising(*[RequeueError("Waiting", "", 1e-9)] * 999)]
)
@pytest.mark.rule("CW-5")
def test_no_sync_makes_its_key_spin(clock: FakeClock, sync: Sync) -> None:
    world = World(clock, sync)

    world.sync()

    assert 0.1 == world.due_in()


@pytest.mark.parametrize("result", [True, 5, "later", {"requeue_after": 1}])
@pytest.mark.rule("CW-5")
def test_an_invalid_result_is_an_error_of_the_sync(clock: FakeClock, result: object) -> None:
    world = World(clock, lambda _key: result)  # type: ignore[arg-type,return-value]

    world.sync()

    assert 1.0 == world.due_in()
    assert f"a sync returns a Result or None, not {result!r}" == str(world.logs[0]["exc_info"])


@pytest.mark.rule("CW-5")
def test_a_key_is_synced_even_if_the_choice_of_its_lane_raises(clock: FakeClock) -> None:
    def is_slow(_key: str) -> bool:
        raise SystemExit

    synced: list[str] = []
    world = World(clock, synced.append, is_slow)
    with capture_logs() as logs:
        for _ in range(2):
            world.queue.add(KEY)
            assert world.controller.process_next_work_item()

    assert [KEY] * 2 == synced
    assert ["cannot determine whether a key is slow"] * 2 == [entry["event"] for entry in logs]


@pytest.mark.rule("PQ-10")
def test_a_key_that_is_put_back_keeps_its_priority(clock: FakeClock) -> None:
    world = World(clock, raising(ValueError("bad"), RequeueError("Waiting", "wait", after=1), None))
    world.queue.add(KEY, -100)
    for _ in range(2):
        with capture_logs():
            assert world.controller.process_ready_item()
        clock.step(1)
        world.timers.fire_due()

    assert (KEY, -100, False) == world.queue.get_with_priority()


@pytest.mark.parametrize(
    ("error", "level"),
    [(ValueError("bad"), "error"), (RequeueError("Waiting", "could not clean up", untold=True), "warning")],
)
@pytest.mark.rule("CW-5")
def test_a_failure_that_lasts_for_hours_does_not_fill_the_log(clock: FakeClock, error: Exception, level: str) -> None:
    world = World(clock, raising(*[error] * 20))
    levels = []
    for _ in range(20):
        world.sync()
        levels.append(world.logs[0]["log_level"])
    assert [1, 2, 4, 8, 16] == [at for at, told in enumerate(levels, 1) if told == level]


@pytest.mark.parametrize("error", [SystemExit(2), CancelledError(), GeneratorExit()], ids=repr)
@pytest.mark.rule("CW-5")
def test_exits_and_cancellations_that_a_sync_raises_are_its_failures(clock: FakeClock, error: BaseException) -> None:
    def sync(_key: str) -> None:
        raise error

    world = World(clock, sync)
    world.sync()

    assert 1.0 == world.due_in()
    assert [("sync failed, requeuing", error)] == [(log["event"], log["exc_info"]) for log in world.logs]
    assert {"success": 0, "requeue": 0, "error": 1} == world.results()


@pytest.mark.rule("CW-5")
def test_an_interrupt_passes_but_the_key_is_given_back(clock: FakeClock) -> None:
    def interrupted(_key: str) -> None:
        raise KeyboardInterrupt

    world = World(clock, interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.sync()

    world.queue.add(KEY)
    assert (KEY, False) == world.queue.try_get()


@pytest.mark.rule("CW-5")
def test_shutdown_ends_the_worker(clock: FakeClock) -> None:
    world = World(clock, raising())
    world.queue.shut_down()

    assert not world.controller.process_next_work_item()
    assert not world.controller.process_ready_item()


@pytest.mark.rule("CW-7")
def test_a_failing_key_does_not_disturb_others(clock: FakeClock) -> None:
    world = World(clock, raising(ValueError("bad"), None))

    world.sync("ns/bad")
    world.sync("ns/good")

    assert {"success": 1, "requeue": 0, "error": 1} == world.results()


@pytest.mark.rule("CW-14")
def test_the_controller_and_the_key_are_bound_to_every_log_line_of_a_sync(clock: FakeClock) -> None:
    seen: list[dict[str, object]] = []
    world = World(clock, lambda _key: seen.append(get_contextvars()))

    world.sync()

    assert [{"controller": "tidbcluster", "key": KEY}] == seen
    assert {} == get_contextvars()


@pytest.mark.rule("MET-10")
def test_every_series_is_zero_before_the_first_sync(clock: FakeClock) -> None:
    world = World(clock, raising())

    assert {"success": 0, "requeue": 0, "error": 0} == world.results()
    assert 0 == world.metric("controller_runtime_reconcile_errors_total")
    assert 0 == world.metric("controller_runtime_active_workers")
    assert 0 == world.metric("controller_runtime_max_concurrent_reconciles")
    assert 0 == world.metric("controller_runtime_reconcile_time_seconds_count")


@pytest.mark.rule("MET-12")
def test_a_worker_is_active_inside_a_sync_only(clock: FakeClock) -> None:
    seen: list[float | None] = []

    def sync(_key: str) -> None:
        seen.append(world.metric("controller_runtime_active_workers"))
        clock.step(0.3)

    world = World(clock, sync)
    world.sync()

    assert [1] == seen
    assert 0 == world.metric("controller_runtime_active_workers")
    assert 0.3 == world.metric("controller_runtime_reconcile_time_seconds_sum")


class Gate:
    """A sync that reports its keys and stays inside until opened."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self._inside = threading.Semaphore(0)
        self._opened = threading.Event()

    def sync(self, key: str) -> None:
        self.entered.append(key)
        self._inside.release()
        assert self._opened.wait(DEADLINE)

    def wait_until_entered(self) -> None:
        assert self._inside.acquire(timeout=DEADLINE)

    def open(self) -> None:
        self._opened.set()


@pytest.mark.rule("CW-4")
def test_workers_start_as_keys_arrive_and_end_with_the_controller(clock: FakeClock) -> None:
    gate = Gate()
    world = World(clock, gate.sync)
    stop = Stop()
    ended = in_background(lambda: world.controller.run(3, stop))
    clock.wait_for_waiters(2)
    assert {"tidbcluster-worker-0"} == _workers()
    # one waiter is the controller, the other one an idle worker
    for number, waiters, workers in ((0, 2, 2), (1, 2, 3), (2, 1, 3)):
        world.queue.add(f"ns/{number}")
        gate.wait_until_entered()
        clock.wait_for_waiters(waiters)
        assert workers == len(_workers())
    world.queue.add("ns/waits")
    assert 3 == world.metric("controller_runtime_max_concurrent_reconciles")
    assert ["ns/0", "ns/1", "ns/2"] == gate.entered

    gate.open()
    gate.wait_until_entered()
    stop.set()

    assert ended.result(DEADLINE)
    assert "ns/waits" == gate.entered[-1]
    assert set() == _workers()


@pytest.mark.rule("CW-4")
def test_a_key_is_synced_in_its_place_where_no_thread_can_start_for_slow_ones(
    clock: FakeClock, mocker: MockerFixture
) -> None:
    synced: list[str] = []
    world = World(clock, synced.append, lambda _key: True)
    mocker.patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread"))
    world.queue.add(KEY)

    assert world.controller.process_next_work_item()

    assert [KEY] == synced


def _workers() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("tidbcluster-worker-")}


class DefectiveClock:
    """Fails the first time it is read."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._defects = [RuntimeError("defect")]
        self.wall = clock.wall
        self.wait = clock.wait

    def now(self) -> float:
        if self._defects:
            raise self._defects.pop()
        return self._clock.now()


@pytest.mark.rule("CW-4")
def test_a_broken_worker_starts_again_after_a_second(clock: FakeClock) -> None:
    gate = Gate()
    gate.open()
    stop = Stop()
    queue = controller_queue("tidbcluster", Timers(clock))
    metrics = ControllerMetrics(CollectorRegistry()).of("tidbcluster")
    controller = Controller("tidbcluster", queue, gate.sync, clock=DefectiveClock(clock), metrics=metrics)
    queue.add("ns/breaks")
    queue.add("ns/next")
    worker = in_background(lambda: controller.work(stop))
    clock.wait_for_waiters()
    assert [] == gate.entered

    clock.step(1)
    gate.wait_until_entered()

    stop.set()
    queue.shut_down()
    worker.result(DEADLINE)
    assert ["ns/next"] == gate.entered


@pytest.mark.rule("CW-10")
def test_the_running_sync_ends_and_queued_keys_are_left(clock: FakeClock) -> None:
    gate = Gate()
    world = World(clock, gate.sync)
    stop = Stop()
    ended = in_background(lambda: world.controller.run(1, stop))
    world.queue.add("ns/running")
    world.queue.add("ns/queued")
    gate.wait_until_entered()

    stop.set()
    assert not ended.done()
    gate.open()

    assert ended.result(DEADLINE)
    assert ["ns/running"] == gate.entered


@pytest.mark.rule("CW-11")
def test_a_sync_that_does_not_end_is_reported(clock: FakeClock) -> None:
    gate = Gate()
    world = World(clock, gate.sync)
    stop = Stop()
    world.queue.add(KEY)
    ended = in_background(lambda: world.controller.run(1, stop))
    gate.wait_until_entered()
    stop.set()

    with capture_logs() as logs:
        while wait([ended], timeout=0.01).not_done:  # the drain may not have begun yet
            clock.step(31)
    gate.open()

    assert not ended.result(DEADLINE)
    assert [[KEY]] == [log["keys"] for log in logs if log["event"] == "syncs did not finish in time"]
