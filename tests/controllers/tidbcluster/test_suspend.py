"""Suspend and resume: the pods go in order, everything that matters stays (lifecycle.md 12, I37, F42)."""

import pytest

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from tests.operator_world import NAMESPACE, OperatorWorld, sample

SUSPEND: Json = {"suspendStatefulSet": True}


def uids(world: OperatorWorld, resource: Resource) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in world.every(resource)}


def database_pods(world: OperatorWorld) -> set[str]:
    return {name for name in uids(world, PODS) if "discovery" not in name}


def is_suspended(world: OperatorWorld) -> bool:
    return world.reason() == "Suspended"


def restart_after_every_write(world: OperatorWorld, end: str) -> None:
    """Until the condition gives the reason `end`."""

    def wrote_or_ended() -> bool:
        return bool(world.writes()) or world.reason() == end

    while world.reason() != end:
        world.forget()
        world.run_until(wrote_or_ended)
        world.restart()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_a_suspended_cluster_keeps_everything_but_its_pods_and_resumes_with_its_data(basic: OperatorWorld) -> None:
    kept = {resource: uids(basic, resource) for resource in (PERSISTENT_VOLUME_CLAIMS, CONFIG_MAPS, SERVICES)}
    cluster_id = basic.cluster()["status"]["clusterID"]
    basic.change(suspendAction=SUSPEND)
    basic.run_until(lambda: is_suspended(basic))

    deleted = [write for write in basic.writes() if write.startswith("delete statefulsets")]
    assert ["basic-tidb", "basic-tikv", "basic-pd"] == [write.split()[-1] for write in deleted]
    assert set() == database_pods(basic)
    assert [] == basic.every(STATEFUL_SETS)
    assert kept == {resource: uids(basic, resource) for resource in kept}
    assert 3 == len(basic.messages("SuccessfulDelete"))

    basic.change(suspendAction=None)
    basic.run_until_ready()
    assert kept == {resource: uids(basic, resource) for resource in kept}
    assert cluster_id == basic.cluster()["status"]["clusterID"]
    assert ["Normal"] * 3 == [basic.cluster()["status"][name]["phase"] for name in ("pd", "tikv", "tidb")]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_a_suspended_cluster_reports_it_and_is_idle(basic: OperatorWorld) -> None:
    basic.change(suspendAction=SUSPEND)
    basic.run_until(lambda: is_suspended(basic))
    ready, status = basic.condition("Ready"), basic.cluster()["status"]
    assert ("False", "PDUnhealthy") == (ready["status"], ready["reason"])
    assert "PD(s) are not healthy; pd, tikv, tidb: suspended: no pods run until" in ready["message"]
    assert "Suspended" == next(c for c in status["tikv"]["conditions"] if c["type"] == "Progressing")["reason"]
    for name, members in (("pd", "members"), ("tikv", "stores"), ("tidb", "members")):
        assert "Suspend" == status[name]["phase"]
        assert not {"statefulSet", members, "leader"} & status[name].keys()
    assert [] == basic.events("Suspended")

    basic.run(5.0)
    basic.forget()
    basic.run(100.0)
    assert [] == basic.writes()
    assert [] == basic.reads()
    assert [] == basic.operator.dataplane.requests


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_one_component_is_suspended_while_the_others_serve(basic: OperatorWorld) -> None:
    others = {name: uid for name, uid in uids(basic, PODS).items() if "tidb-0" not in name}
    basic.change(tidb={"suspendAction": SUSPEND})
    basic.run_until(lambda: is_suspended(basic))
    assert others == uids(basic, PODS)
    assert "tidb: suspended" in basic.condition("Progressing")["message"]

    basic.change(tikv={"replicas": 2})
    basic.run_until(lambda: basic.replicas("tikv") == 2)
    basic.change(tidb={"suspendAction": None})
    basic.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("F42")
def test_finishes_running_work_before_suspending_and_says_so(basic: OperatorWorld) -> None:
    basic.change(tidb={"statefulSetUpdateStrategy": "OnDelete"})
    basic.run_until_ready()
    basic.change(tidb={"annotations": {"tidb.pingcap.com/restartedAt": "now"}})
    basic.run_until(lambda: basic.cluster()["status"]["tidb"]["phase"] == "Upgrade")
    basic.change(tidb={"suspendAction": SUSPEND})
    basic.run(30.0)
    condition = basic.condition("Progressing")
    assert "OnDelete" == condition["reason"]
    assert condition["message"].endswith("; waiting for the phase Upgrade to end before suspending")
    assert "basic-tidb-0" in uids(basic, PODS)

    basic.admin.delete(PODS, "basic-tidb-0", NAMESPACE)
    basic.run_until(lambda: is_suspended(basic))


@pytest.mark.rule("I37")
def test_suspends_dependent_components_first_and_the_others_say_that_they_wait(basic: OperatorWorld) -> None:
    basic.change(suspendAction=SUSPEND)
    basic.run_until(lambda: basic.cluster()["status"]["tidb"]["phase"] == "Suspend")
    told = "waiting for tidb to be suspended first"
    basic.run_until(lambda: told in basic.condition("Progressing")["message"])
    assert {"basic-pd", "basic-tikv"} <= uids(basic, STATEFUL_SETS).keys()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_a_reverted_suspend_starts_all_pods_again(basic: OperatorWorld) -> None:
    claims = uids(basic, PERSISTENT_VOLUME_CLAIMS)
    basic.change(suspendAction=SUSPEND)
    basic.run_until(lambda: any(write == "delete statefulsets.apps basic-tikv" for write in basic.writes()))
    basic.change(suspendAction=None)
    basic.run_until_ready()
    assert claims == uids(basic, PERSISTENT_VOLUME_CLAIMS)


@pytest.mark.rule("lifecycle-12")
def test_does_not_bootstrap_a_cluster_created_as_suspended(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["suspendAction"] = SUSPEND
    world.apply(cluster)
    world.run_until(lambda: is_suspended(world))
    assert [] == world.every(STATEFUL_SETS)
    world.change(suspendAction=None)
    world.run_until_ready()


@pytest.mark.rule("lifecycle-3.2")
def test_paused_beats_suspend(basic: OperatorWorld) -> None:
    before = uids(basic, PODS)
    basic.change(paused=True, suspendAction=SUSPEND)
    basic.run_until(lambda: basic.reason() == "Paused")
    basic.run(60.0)
    assert before == uids(basic, PODS)


@pytest.mark.slow
@pytest.mark.rule("I31")
def test_a_new_process_after_every_write_suspends_and_resumes(basic: OperatorWorld) -> None:
    claims = uids(basic, PERSISTENT_VOLUME_CLAIMS)
    for spec, end in ((SUSPEND, "Suspended"), (None, "Done")):
        basic.change(suspendAction=spec)
        restart_after_every_write(basic, end)
    assert claims == uids(basic, PERSISTENT_VOLUME_CLAIMS)
    assert basic.is_ready()


@pytest.mark.parametrize("orphaned", ["before", "after"])
@pytest.mark.rule("lifecycle-12")
def test_suspends_pods_without_a_stateful_set(basic: OperatorWorld, orphaned: str) -> None:
    """A user deleted the StatefulSet with orphan propagation, before or after the suspension began."""
    if orphaned == "after":
        basic.change(tidb={"suspendAction": SUSPEND})
        basic.run_until(lambda: basic.cluster()["status"]["tidb"]["phase"] == "Suspend")
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE, propagation="Orphan")
    if orphaned == "before":
        basic.change(tidb={"suspendAction": SUSPEND})
    basic.run_until(lambda: is_suspended(basic))
    assert "basic-tidb-0" not in uids(basic, PODS)


@pytest.mark.rule("F5")
def test_creates_nothing_for_an_outdated_cache(basic: OperatorWorld) -> None:
    cache = basic.operator.caches[TIDB_CLUSTERS]
    cache.blind = True
    basic.change(suspendAction=SUSPEND)
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", NAMESPACE)
    basic.run(30.0)

    assert not basic.exists(STATEFUL_SETS, "basic-tidb")
    cache.blind = False
    cache.cut()
    basic.run_until(lambda: is_suspended(basic))


@pytest.mark.rule("lifecycle-12")
def test_components_that_wait_name_the_suspended_component(basic: OperatorWorld) -> None:
    basic.change(pd={"suspendAction": SUSPEND})
    basic.run_until(lambda: "is suspended" in basic.condition("Progressing")["message"], 120)
    told = "tikv: PD has no quorum of healthy, Ready members yet; PD is suspended"
    assert told in basic.condition("Progressing")["message"]
