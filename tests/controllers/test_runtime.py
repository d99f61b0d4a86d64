"""The objects that a process begins to act for (docs/adr/0010-shards-by-leases.md)."""

import msgspec
from prometheus_client import CollectorRegistry
from pytest_mock import MockerFixture

from controllers.enqueueing import NEWS
from controllers.runtime import new_runtime
from kube.objects import Object
from kube.resources import BACKUP_SCHEDULES, TIDB_CLUSTERS
from ports.clock import FakeClock
from ports.fencing import OpenFence
from workqueue.timers import Timers


def test_a_process_that_takes_a_shard_reconciles_its_objects_and_no_others(
    mocker: MockerFixture, clock: FakeClock
) -> None:
    runtime = new_runtime(
        client=mocker.Mock(),
        recorder=mocker.Mock(),
        timers=Timers(clock),
        informers=mocker.Mock(),
        fence=OpenFence(),
        registry=CollectorRegistry(),
    )
    enqueued: list[tuple[str, int]] = []

    def enqueue(key: str, /, priority: int = NEWS) -> None:
        enqueued.append((key, priority))

    for resource in (TIDB_CLUSTERS, BACKUP_SCHEDULES):
        informers = mocker.Mock()
        informers.lister_for(resource).list.return_value = [
            Object(msgspec.json.encode({"metadata": {"namespace": namespace, "name": "a"}})) for namespace in "xyz"
        ]
        runtime.enqueue_objects(informers, resource, enqueue)
        assert 1 == informers.informer_for(resource).add_event_handler.call_count
    # schedules are shared out by their namespace
    runtime.take_up({"x/a", "y"}.__contains__)
    assert [("x/a", NEWS), ("y/a", NEWS)] == enqueued
