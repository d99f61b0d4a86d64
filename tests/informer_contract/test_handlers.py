"""Slow and failing handlers, and workers with failing syncs, do not disturb the others (TEST-7)."""

import threading

import pytest
from prometheus_client import CollectorRegistry

from controllers.controller import Controller
from controllers.enqueueing import enqueue_object
from controllers.metrics import ControllerMetrics
from informers.threads import start_thread
from kube.resources import CONFIG_MAPS
from ports.stopping import Stop
from tests.e2e.waiting import CLOCK, eventually
from tests.informer_contract.following import Heard, config_map, following
from tests.informer_contract.servers import Server
from workqueue.priority_queue import PriorityQueue
from workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from workqueue.timers import Timers


def create(server: Server, namespace: str, name: str, value: int = 1) -> None:
    server.admin.create(CONFIG_MAPS, config_map(name, value), namespace)


@pytest.mark.rule("INF-14")
def test_a_slow_handler_delays_no_other_and_misses_nothing(server: Server, namespace: str) -> None:
    with following(server, namespace) as follower:
        slow = Heard()
        slow.free.clear()
        follower.informer.add_event_handler(slow)
        for name in "abc":
            create(server, namespace, name)

        follower.heard.await_told("add a=1", "add b=1", "add c=1")
        assert {"a=1", "b=1", "c=1"} == follower.shown()
        assert [] == slow.told
        slow.free.set()
        slow.await_told("add a=1", "add b=1", "add c=1")


@pytest.mark.slow
@pytest.mark.rule("INF-16")
def test_a_handler_that_raises_loses_that_notification_only(server: Server, namespace: str) -> None:
    with following(server, namespace) as follower:
        failing = Heard()
        failing.failures = 1
        follower.informer.add_event_handler(failing, name="failing")
        create(server, namespace, "a")
        create(server, namespace, "b")

        follower.heard.await_told("add a=1", "add b=1")
        failing.await_told("add b=1")
        labels = {"resource": str(CONFIG_MAPS), "handler": "failing"}
        assert 1 == follower.registry.get_sample_value("informer_handler_failures_total", labels)


@pytest.mark.rule("CW-7")
def test_a_sync_that_raises_is_retried_and_disturbs_no_other_key(server: Server, namespace: str) -> None:
    timers, stop, synced = Timers(CLOCK), Stop(), list[str]()
    failures = iter(range(2))

    def sync(key: str) -> None:
        name = key.rpartition("/")[2]
        if name == "bad" and next(failures, None) is not None:
            raise ValueError(key)
        synced.append(name)

    limiter = ItemExponentialFailureRateLimiter[str](CLOCK, base=0.05, max_delay=1.0)
    queue = PriorityQueue(timers, limiter=limiter)
    metrics = ControllerMetrics(CollectorRegistry()).of("contract")
    controller = Controller("contract", queue, sync, clock=CLOCK, metrics=metrics)
    threads: list[threading.Thread] = []
    with following(server, namespace) as follower:
        follower.informer.add_event_handler(enqueue_object(queue.add))
        try:
            threads.append(start_thread("timers", lambda: timers.run(stop)))
            threads.append(start_thread("controller", lambda: controller.run(2, stop)))
            create(server, namespace, "bad")
            create(server, namespace, "good")
            eventually(lambda: len(synced) >= 2)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert ["good", "bad"] == synced
    assert 0 == queue.num_requeues(f"{namespace}/bad")
