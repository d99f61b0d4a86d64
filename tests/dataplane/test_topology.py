"""The topology that TiDB Dashboard reads from PD's etcd (dataplane-apis.md 4)."""

import json

import pytest

from dataplane import topology
from dataplane.errors import Unavailable
from ports.clock import FakeClock
from tests.dataplane.log_tasks import EtcdWorld

ADDRESSES = {"prometheus": ("basic-prometheus.lab.svc", 9090), "grafana": ("basic-grafana.lab.svc", 3000)}


@pytest.fixture
def world(clock: FakeClock) -> EtcdWorld:
    return EtcdWorld(clock)


def known(world: EtcdWorld, name: str) -> object:
    value = world.client.get(f"/topology/{name}")
    return None if value is None else json.loads(value)


@pytest.mark.rule("dataplane-apis-4")
def test_finds_servers_whose_ttl_has_expired(world: EtcdWorld) -> None:
    world.etcd.put(b"/topology/tidb/a:4000/info", b"{}")
    world.etcd.put(b"/topology/tidb/b:4000/info", b"{}")
    world.etcd.put(b"/topology/tidb/b:4000/ttl", b"1")
    assert ["a:4000"] == topology.stale_servers(world.client)
    topology.forget(world.client, "a:4000")
    assert [] == topology.stale_servers(world.client)
    assert [b"/topology/tidb/b:4000/info", b"/topology/tidb/b:4000/ttl"] == sorted(world.etcd.keys)


@pytest.mark.parametrize("name", ["a:4000/\x1b[2J", "a:4000/b", "a" * 1000, ""])
def test_ignores_keys_that_are_not_of_a_server(world: EtcdWorld, name: str) -> None:
    world.etcd.put(f"/topology/tidb/{name}/info".encode(), b"{}")
    assert [] == topology.stale_servers(world.client)


@pytest.mark.rule("dataplane-apis-4")
def test_addresses_expire_ten_minutes_after_registration(world: EtcdWorld, clock: FakeClock) -> None:
    topology.publish(world.client, ADDRESSES)
    assert {"ip": "basic-prometheus.lab.svc", "port": 9090} == known(world, "prometheus")
    assert {"ip": "basic-grafana.lab.svc", "port": 3000} == known(world, "grafana")
    clock.step(601.0)
    assert None is known(world, "prometheus") is known(world, "grafana")


@pytest.mark.rule("dataplane-apis-4")
def test_addresses_with_enough_time_left_are_not_written(world: EtcdWorld, clock: FakeClock) -> None:
    topology.publish(world.client, ADDRESSES)
    revision = world.etcd.revision
    clock.step(200.0)
    topology.publish(world.client, ADDRESSES)
    assert revision == world.etcd.revision
    clock.step(150.0)
    topology.publish(world.client, ADDRESSES)
    clock.step(590.0)
    assert {"ip": "basic-grafana.lab.svc", "port": 3000} == known(world, "grafana")


@pytest.mark.rule("dataplane-apis-4")
def test_two_monitors_do_not_overwrite_each_other(world: EtcdWorld, clock: FakeClock) -> None:
    """In v1.6 each monitor writes its address at every reconcile."""
    topology.publish(world.client, ADDRESSES)
    second = {"prometheus": ("other-prometheus.lab.svc", 9090)}
    topology.publish(world.client, second)
    assert {"ip": "basic-prometheus.lab.svc", "port": 9090} == known(world, "prometheus")
    clock.step(601.0)
    topology.publish(world.client, second)
    assert {"ip": "other-prometheus.lab.svc", "port": 9090} == known(world, "prometheus")


@pytest.mark.rule("dataplane-apis-4")
def test_replaces_an_address_without_a_lease(world: EtcdWorld) -> None:
    world.etcd.put(b"/topology/prometheus", b"{}")
    topology.publish(world.client, ADDRESSES)
    assert {"ip": "basic-prometheus.lab.svc", "port": 9090} == known(world, "prometheus")


@pytest.mark.rule("dataplane-apis-4")
def test_writes_nothing_without_a_leader(world: EtcdWorld) -> None:
    world.answers = False
    with pytest.raises(Unavailable):
        topology.publish(world.client, ADDRESSES)
