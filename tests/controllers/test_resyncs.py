"""Which handlers every resync calls for unchanged objects (INF-25, CW-2)."""

from collections import defaultdict

import pytest
from prometheus_client import CollectorRegistry
from pytest_mock import MockerFixture

from controllers.informing import NO_RESYNC
from controllers.runtime import new_runtime
from controllers.wiring import tidb_controllers
from informers.handlers import ResourceEventHandler
from kube.resources import JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from ports.clock import FakeClock
from ports.fencing import OpenFence
from workqueue.timers import Timers


@pytest.mark.rule("INF-25")
def test_resyncs_bring_up_the_objects_of_controllers_and_nothing_that_these_own(
    mocker: MockerFixture, clock: FakeClock
) -> None:
    periods: defaultdict[Resource, list[float | None]] = defaultdict(list)
    informers = mocker.Mock()

    def informer_for(resource: Resource) -> object:
        def add(_: ResourceEventHandler, resync_period: float | None = None) -> None:
            periods[resource].append(resync_period)

        return mocker.Mock(add_event_handler=add)

    informers.informer_for = informer_for
    runtime = new_runtime(
        client=mocker.Mock(),
        recorder=mocker.Mock(),
        timers=Timers(clock),
        informers=lambda _: informers,
        fence=OpenFence(),
        registry=CollectorRegistry(),
    )
    controllers = tidb_controllers(runtime, mocker.Mock(), mocker.Mock(), selector="", permitted=())

    resynced = {resource: each for resource in periods if (each := periods[resource].count(None))}
    # at each resync of a cluster, the controller of pod commands checks the cluster's pods
    assert dict.fromkeys(resynced, 1) | {TIDB_CLUSTERS: 2} == resynced
    assert len(controllers) - 1 == len(resynced)
    for owned in (STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS, JOBS):
        assert {NO_RESYNC} == set(periods[owned])
