"""DM masters that begin a cluster or join one (objects.md 10.4, other-resources.md 6.5)."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from apis.dmcluster import DMCluster
from dataplane.addresses import Address
from dataplane.calls import Caller
from dataplane.dm import DMMasterClient, LiveMaster
from discovery.asking import Refused
from discovery.masters import DMDiscovery, asker
from ports.clock import FakeClock
from ports.fencing import OpenFence
from tests.dataplane.scripted import ScriptedTransport
from tests.discovery.worlds import refused

HERE = "10.0.0.1"
"""The address that all masters ask from."""

URL = Address("http://sync-dm-master.etl:8261")


def cluster(*, status: dict[str, Any] | None = None, **spec: Any) -> DMCluster:
    tree = {
        "metadata": {"name": "sync", "namespace": "etl", "uid": "u1"},
        "spec": {"master": {"replicas": 3}} | spec,
        "status": status or {},
    }
    return msgspec.convert(tree, DMCluster)


def address(ordinal: int) -> str:
    return f"sync-dm-master-{ordinal}.sync-dm-master-peer:8291\n"


def masters(*ordinals: int) -> tuple[LiveMaster, ...]:
    """Masters as the API lists them."""
    found = [
        {"name": f"sync-dm-master-{each}", "memberID": str(each + 1), "peerURLs": [f"http://{address(each).strip()}"]}
        for each in ordinals
    ]
    body = msgspec.json.encode({"result": True, "members": [{"master": {"masters": found}}]}).decode()
    transport = ScriptedTransport().on("GET /apis/v1alpha1/members?master=true", (200, body))
    return DMMasterClient(Caller(transport, URL, OpenFence(), FakeClock())).masters()


@dataclass
class World:
    """Answers discovery's reads; `there` are the masters that answer, None for silence."""

    dc: DMCluster = field(default_factory=cluster)
    there: tuple[LiveMaster, ...] | None = None
    data: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    alive: frozenset[int] = frozenset()
    lists: int = 0
    clock: FakeClock = field(default_factory=FakeClock)

    def get(self, namespace: str, name: str) -> DMCluster:
        assert ("etl", "sync") == (namespace, name)
        return self.dc

    def doubt(self, namespace: str, workload: str, pod: str, source: str) -> str:
        assert ("etl", "sync-dm-master") == (namespace, workload)
        return "" if source == HERE else f"{pod} is at {HERE}"

    def is_given_up(self, namespace: str, claim: str) -> bool:
        return f"{namespace}/{claim}" in self.given_up

    def with_data(self, dc: DMCluster) -> frozenset[str]:
        self.lists += 1
        return self.data

    def masters(self, dc: DMCluster, timeout: float) -> tuple[LiveMaster, ...]:
        if self.there is None:
            raise refused(URL)
        return self.there

    def answers(self, dc: DMCluster, ordinal: int, timeout: float) -> bool:
        return ordinal in self.alive

    def discovery(self) -> DMDiscovery:
        return DMDiscovery(self, self, self.clock, "etl")


@pytest.mark.rule("objects-10.4")
def test_the_first_begins_when_all_others_have_asked() -> None:
    discovery = World().discovery()
    for ordinal in (0, 1):
        with pytest.raises(Refused):
            discovery.new(address(ordinal), HERE)
    with pytest.raises(Refused, match="waiting for sync-dm-master-0"):
        discovery.new(address(2), HERE)
    begin = "--initial-cluster=sync-dm-master-0=http://sync-dm-master-0.sync-dm-master-peer:8291"
    assert begin == discovery.new(address(0), HERE)


@pytest.mark.rule("objects-10.4")
def test_a_single_master_begins_immediately_with_the_tls_of_its_cluster() -> None:
    dc = cluster(master={"replicas": 1}, tlsCluster={"enabled": True})
    begin = "--initial-cluster=sync-dm-master-0=https://sync-dm-master-0.sync-dm-master-peer:8291"
    assert begin == World(dc).discovery().new(address(0), HERE)


@pytest.mark.rule("objects-10.4")
def test_a_later_master_joins_the_others_at_their_client_port() -> None:
    joins = "--join=http://sync-dm-master-0.sync-dm-master-peer:8261,http://sync-dm-master-2.sync-dm-master-peer:8261"
    assert joins == World(there=masters(0, 1, 2)).discovery().new(address(1), HERE)


@pytest.mark.rule("8.3")
def test_a_pod_that_is_to_leave_does_not_join() -> None:
    with pytest.raises(Refused, match="sync-dm-master-1 is no longer wanted: the spec asks for sync-dm-master-0"):
        World(cluster(master={"replicas": 1}), there=masters(0)).discovery().new(address(1), HERE)
    with pytest.raises(Refused, match="was about to leave"):
        World(there=masters(0), given_up=frozenset({"etl/dm-master-sync-dm-master-1"})).discovery().new(
            address(1), HERE
        )


@pytest.mark.rule("objects-10.4")
def test_a_pod_whose_master_failover_has_removed_does_not_join_before_it_is_replaced() -> None:
    failed = {"podName": "sync-dm-master-1", "memberID": "2"}

    def discovery(*listed: int, **record: Any) -> DMDiscovery:
        dc = cluster(status={"master": {"failureMembers": {"sync-dm-master-1": failed | record}}})
        return World(dc=dc, there=masters(*listed)).discovery()

    with pytest.raises(Refused, match="sync-dm-master-1 is being replaced"):
        discovery(0, 2).new(address(1), HERE)
    # a pod without data that the masters still list is rejected by them
    assert discovery(0, 1, 2).new(address(1), HERE) == discovery(0, 2, memberDeleted=True).new(address(1), HERE)


def test_a_master_listed_alone_has_no_member_to_join() -> None:
    with pytest.raises(Refused, match="no member other than"):
        World(there=masters(1)).discovery().new(address(1), HERE)


MEMBER = {"name": "sync-dm-master-1", "id": "2", "clientURL": "", "health": False}


@pytest.mark.rule("F40")
def test_does_not_begin_a_known_cluster() -> None:
    discovery = World(cluster(status={"master": {"members": {"sync-dm-master-1": MEMBER}}})).discovery()
    for _ in range(2):
        for ordinal in (2, 1, 0):
            with pytest.raises(Refused, match="exists, but none"):
                discovery.new(address(ordinal), HERE)


@pytest.mark.rule("F40")
def test_does_not_begin_over_volumes_with_data_and_lists_them_last() -> None:
    world = World(data=frozenset({"dm-master-sync-dm-master-1"}))
    discovery = world.discovery()
    for ordinal, why in ((0, "may hold data"), (2, "waiting for sync-dm-master-0"), (1, "waiting for")):
        with pytest.raises(Refused, match=why):
            discovery.new(address(ordinal), HERE)
    assert 0 == world.lists
    for lists in (1, 2):
        with pytest.raises(Refused, match="volumes with the data of masters exist"):
            discovery.new(address(0), HERE)
        assert lists == world.lists


@pytest.mark.rule("F40")
def test_a_pod_that_may_begin_no_longer_counts_as_empty() -> None:
    discovery = World().discovery()
    for ordinal in (1, 2):
        with pytest.raises(Refused):
            discovery.new(address(ordinal), HERE)
    discovery.new(address(0), HERE)
    for ordinal in (1, 2):
        with pytest.raises(Refused, match="waiting for sync-dm-master-0"):
            discovery.new(address(ordinal), HERE)


@pytest.mark.rule("objects-10.4")
def test_the_first_begins_alone_if_no_other_address_answers() -> None:
    dc = cluster(podManagementPolicy="OrderedReady")
    assert World(dc).discovery().new(address(0), HERE).startswith("--initial-cluster=")
    with pytest.raises(Refused, match="other members may be running"):
        World(dc, alive=frozenset({2})).discovery().new(address(0), HERE)


@pytest.mark.parametrize(
    "advertised",
    ["", "x", "sync-dm-master-0.sync-dm-master-peer", "sync-dm-master-0.sync-dm-master-peer.etl:8291", "a.b:8291"],
)
@pytest.mark.rule("objects-10.4")
def test_rejects_an_address_that_is_not_a_masters(advertised: str) -> None:
    with pytest.raises(Refused, match="is not an address"):
        asker(advertised)
