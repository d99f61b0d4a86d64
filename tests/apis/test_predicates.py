"""Predicates over a status (defaults-and-validation.md 8.5, lifecycle.md 3.1, 4.3, F7)."""

from typing import Any

import pytest

from apis import predicates
from apis.accessor import components
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from tests.apis.clusters import cluster, golden_clusters, minimal


def pd_status(*health: bool, ready: int | None = None, **more: Any) -> Json:
    members = {f"pd-{index}": member(f"pd-{index}", health=well) for index, well in enumerate(health)}
    ready = sum(health) if ready is None else ready
    return {
        "synced": True,
        "members": members,
        "statefulSet": {"replicas": len(health), "readyReplicas": ready},
        **more,
    }


def member(name: str, *, health: bool) -> Json:
    return {"name": name, "id": "1", "clientURL": "http://x", "health": health}


def store(number: int, state: str = "Up") -> Json:
    return {"id": str(number), "podName": f"tikv-{number}", "ip": "x", "leaderCount": 0, "state": state}


def tikv_status(*states: str, **more: Any) -> Json:
    stores = {str(number): store(number, state) for number, state in enumerate(states)}
    ready = sum(state == "Up" for state in states)
    return {"synced": True, "stores": stores, "statefulSet": {"replicas": len(states), "readyReplicas": ready}, **more}


def with_status(**status: Json) -> TidbCluster:
    return cluster(minimal(), status=status)


@pytest.mark.parametrize(
    ("status", "available"),
    [
        (pd_status(True, True, True), True),
        (pd_status(True, True, False), True),
        (pd_status(True, False, False), False),
        (pd_status(True), False),
        (pd_status(True, True, True, ready=1), False),
        (pd_status(True, True, True, statefulSet=None), False),
        (pd_status(True, True, True, phase="Suspend"), False),
        ({}, False),
    ],
)
def test_pd_is_available_with_a_quorum(status: Json, available: bool) -> None:
    assert available == predicates.is_available(with_status(pd=status), "pd")


def test_peers_count_towards_the_quorum_of_pd() -> None:
    peers = {name: member(name, health=True) for name in ("a", "b")}
    tc = with_status(pd=pd_status(True, False, False, peerMembers=peers))
    assert predicates.is_available(tc, "pd")
    unwell = {name: member(name, health=False) for name in ("a", "b")}
    assert not predicates.is_available(with_status(pd=pd_status(True, True, False, peerMembers=unwell)), "pd")


def test_an_external_pd_counts_as_available_and_pd_without_replicas_does_not() -> None:
    assert predicates.is_available(cluster({"version": "v1"}), "pd")
    assert not predicates.is_available(cluster(minimal(pd={"replicas": 0}), status={"pd": pd_status()}), "pd")


@pytest.mark.parametrize(
    ("status", "available"),
    [
        (tikv_status("Up", "Down", "Offline"), True),
        (tikv_status("Down"), False),
        (tikv_status("Down", peerStores={"9": store(9)}), True),
        (tikv_status("Up", statefulSet={"replicas": 1}), False),
        (tikv_status("Up", phase="Suspend"), False),
        (tikv_status(), False),
        ({}, False),
    ],
)
def test_tikv_is_available_with_one_store(status: Json, available: bool) -> None:
    assert available == predicates.is_available(with_status(tikv=status), "tikv")


@pytest.mark.parametrize(
    ("members", "phase", "available"),
    [(["online", "paused"], "", True), (["offline"], "", False), ([], "", False), (["online"], "Suspend", False)],
)
def test_pump_is_available_with_one_online_node(members: list[str], phase: str, available: bool) -> None:
    listed = [{"nodeId": "1", "host": "h", "state": state} for state in members]
    spec, status = minimal(pump={"replicas": 1}), {"pump": {"members": listed, "phase": phase}}
    assert available == predicates.is_available(cluster(spec, status=status), "pump")
    assert predicates.is_available(cluster(minimal(), status=status), "pump")


def test_all_members_are_ready_only_if_every_wanted_member_is() -> None:
    assert predicates.all_members_ready(with_status(pd=pd_status(True, True, True)), "pd")
    assert not predicates.all_members_ready(with_status(pd=pd_status(True, True)), "pd")
    assert not predicates.all_members_ready(with_status(pd=pd_status(True, True, False)), "pd")
    assert predicates.all_members_ready(with_status(tikv=tikv_status("Up", "Up", "Up")), "tikv")
    assert not predicates.all_members_ready(with_status(tikv=tikv_status("Up", "Up", "Down")), "tikv")
    failed = tikv_status("Up", "Up", "Up", failureStores={"1": {}})
    assert not predicates.all_members_ready(with_status(tikv=failed), "tikv")
    tidb = {"members": {name: {"name": name, "health": True} for name in "ab"}}
    assert predicates.all_members_ready(with_status(tidb=tidb), "tidb")


def test_other_components_are_ready_with_all_their_members() -> None:
    spec = minimal(tiflash={"replicas": 1, "storageClaims": []}, ticdc={"replicas": 1}, tiproxy={"replicas": 1})
    status = {
        "tiflash": tikv_status("Up"),
        "ticdc": {"synced": True, "captures": {"a": {"ready": True}}},
        "tiproxy": {"synced": True, "members": {"a": {"name": "a", "health": True}}},
    }
    for component in status:
        assert predicates.all_members_ready(cluster(spec, status=status), component)
        assert not predicates.all_members_ready(cluster(spec), component)
        assert not predicates.all_members_ready(cluster(minimal(), status=status), component)


@pytest.mark.rule("F7")
def test_an_unsynced_status_makes_a_component_unavailable() -> None:
    stale = with_status(pd=pd_status(True, True, True, synced=False), tikv=tikv_status("Up", "Up", "Up", synced=False))
    assert not predicates.is_available(stale, "pd")
    assert not predicates.is_available(stale, "tikv")
    assert not predicates.all_members_ready(stale, "pd")
    assert not predicates.all_members_ready(stale, "tikv")
    assert ["pd"] == [name for name in ("pd", "tidb", "pump") if not predicates.is_synced(stale, name)]


def test_reads_phases_and_actual_replicas() -> None:
    status = {
        "pd": pd_status(True, True, True, phase="Upgrade"),
        "pdms": {"tso": {"phase": "Scale"}},
    }
    tc = with_status(**status)
    assert predicates.in_phase(tc, "pd", "Scale", "Upgrade")
    assert predicates.in_phase(tc, "tso", "Scale")
    assert not predicates.in_phase(tc, "scheduling", "Scale")
    assert not predicates.in_phase(tc, "tikv", "Normal")
    assert (3, 0) == (predicates.actual_replicas(tc, "pd"), predicates.actual_replicas(tc, "tikv"))


@pytest.mark.parametrize(
    ("phase", "stateful_set", "suspend", "expected"),
    [
        ("Suspend", None, True, True),
        ("Suspend", {"replicas": 1}, True, False),
        ("Suspend", {"replicas": 1}, False, True),
        ("Normal", None, True, False),
    ],
)
def test_a_component_is_suspended_once_its_stateful_set_is_gone(
    phase: str, stateful_set: Json | None, suspend: bool, expected: bool
) -> None:
    spec = minimal(tikv={"suspendAction": {"suspendStatefulSet": suspend}})
    tc = cluster(spec, status={"tikv": {"phase": phase, "statefulSet": stateful_set}})
    assert expected == predicates.is_suspended(tc, "tikv")


@pytest.mark.parametrize(("name", "item"), golden_clusters())
def test_clusters_recorded_from_v1_6_are_available(name: str, item: Json) -> None:
    tc = with_defaults(decode(item, TidbCluster))
    serving = {component.name for component in components(tc) if not component.suspended}
    assert predicates.is_available(tc, "pd"), name
    assert ("tikv" in serving) == predicates.is_available(tc, "tikv") == predicates.all_members_ready(tc, "tikv")
    assert ("tidb" in serving) == predicates.all_members_ready(tc, "tidb")
