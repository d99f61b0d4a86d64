"""TiDB Dashboard learns from PD where the monitor is (other-resources.md 3.8)."""

import json

import pytest

from kube.objects import Json
from sandbox.dataplane.pd.etcd import Etcd
from tests.controllers.tidbmonitor.monitors import Monitors, monitor
from tests.operator_world import NAMESPACE

KEYS = (b"/topology/prometheus", b"/topology/grafana")


def etcd(monitors: Monitors) -> Etcd:
    pd = monitors.world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return pd.etcd


def told(monitors: Monitors) -> list[Json | None]:
    found = (etcd(monitors).range(key, b"", monitors.world.clock.now()) for key in KEYS)
    return [json.loads(each[0][1].value) if each else None for each in found]


@pytest.mark.rule("other-resources-3.8")
def test_pd_gets_the_addresses_of_prometheus_and_grafana(beside_basic: Monitors) -> None:
    beside_basic.create(monitor())
    beside_basic.run_until_ready()
    prometheus = {"ip": "basic-prometheus.default.svc", "port": 9090}
    assert [prometheus, {"ip": "basic-grafana.default.svc", "port": 3000}] == told(beside_basic)


@pytest.mark.rule("other-resources-3.8")
def test_without_grafana_none_is_named(beside_basic: Monitors) -> None:
    beside_basic.create(monitor(grafana=None))
    beside_basic.run_until_ready()
    assert {"ip": "basic-prometheus.default.svc", "port": 9090} == told(beside_basic)[0]
    assert None is told(beside_basic)[1]


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.8")
def test_a_known_address_is_renewed_only_before_it_expires(beside_basic: Monitors) -> None:
    beside_basic.create(monitor())
    beside_basic.run_until_ready()
    written = [etcd(beside_basic).keys[key].modified for key in KEYS]
    for _ in range(3):
        beside_basic.resync()
    assert written == [etcd(beside_basic).keys[key].modified for key in KEYS]
    for _ in range(30):
        beside_basic.world.run(30.0)
        beside_basic.resync()
        assert None not in told(beside_basic)


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.8")
def test_a_pd_that_does_not_answer_keeps_no_monitor_from_being_ready(beside_basic: Monitors) -> None:
    heal = beside_basic.world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-pd-0")
    beside_basic.create(monitor())
    beside_basic.run_until_ready()
    heal()
    beside_basic.world.run_until_ready(within=400.0)
    beside_basic.resync()
    assert None not in told(beside_basic)
