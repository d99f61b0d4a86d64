"""Unsupported requests: the operator says so, names the field, and continues with everything else."""

import pytest

from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def pods(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def refusal(world: OperatorWorld) -> str:
    """The message of the refusal, once it is reported; an event says the same."""
    world.run_until(lambda: world.reason() == "FixedField")
    condition = world.condition("Progressing")
    assert "False" == condition["status"]
    assert condition["message"] in [event["message"] for event in world.events("FixedField")]
    return str(condition["message"])


def written(world: OperatorWorld) -> list[str]:
    return [write for write in world.writes() if "tidbclusters" not in write and "events" not in write]


ORDERED = {"podManagementPolicy": "OrderedReady"}


@pytest.mark.slow
def test_refuses_a_change_that_would_replace_pods_and_writes_nothing(basic: OperatorWorld) -> None:
    before = pods(basic)
    basic.change(**ORDERED)
    assert 'spec.podManagementPolicy: "Parallel" → "OrderedReady"' in refusal(basic)
    basic.run(40.0)

    assert [] == written(basic)
    assert before == pods(basic)
    assert basic.is_ready()


@pytest.mark.rule("F23", "#4369")
def test_refuses_a_mount_without_a_volume_before_any_pod_is_touched(basic: OperatorWorld) -> None:
    """The roll would delete a pod that could not be recreated."""
    before = pods(basic)
    basic.change(tidb={"additionalVolumeMounts": [{"name": "nowhere", "mountPath": "/nowhere"}]})
    basic.run_until(lambda: basic.reason() == "FailedUpdateTiDBSTS")
    assert "spec.tidb mounts nowhere" in basic.condition("Progressing")["message"]
    (event,) = basic.events("FailedUpdateTiDBSTS")
    assert "Warning" == event["type"]
    basic.run(40.0)
    assert ([], before) == (written(basic), pods(basic))

    basic.change(tidb={"additionalVolumeMounts": None})
    basic.run_until_ready()
    assert ([], before) == (written(basic), pods(basic))


def test_a_refusal_ends_with_its_cause(basic: OperatorWorld) -> None:
    basic.change(**ORDERED)
    refusal(basic)
    basic.change(podManagementPolicy=None)
    basic.run_until_ready()
    assert [] == written(basic)


@pytest.mark.slow
def test_scales_out_despite_a_refusal(basic: OperatorWorld) -> None:
    basic.change(pd={"replicas": 3}, tikv={"replicas": 2}, **ORDERED)
    before = pods(basic)
    basic.run_until(lambda: (basic.replicas("pd"), basic.replicas("tikv")) == (3, 2))
    basic.run_until(lambda: len(basic.cluster()["status"]["pd"]["members"]) == 3)

    assert "podManagementPolicy" in refusal(basic)
    assert before.items() <= pods(basic).items()


@pytest.mark.rule("6.5")
def test_an_in_place_configuration_changes_the_config_map_and_restarts_no_pod(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["configUpdateStrategy"] = "InPlace"
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    world.change(tikv={"config": {"log": {"level": "warn"}}})
    world.run_until(lambda: "warn" in world.get(CONFIG_MAPS, "basic-tikv")["data"]["config-file"])
    world.run_until_ready()

    assert ["patch configmaps basic-tikv"] == written(world)


@pytest.mark.slow
@pytest.mark.rule("3.2")
def test_observes_a_paused_cluster_and_leaves_it_alone(basic: OperatorWorld) -> None:
    basic.change(paused=True, tidb={"replicas": 2}, pd={"service": {"labels": {"owner": "me"}}})
    basic.run_until(lambda: basic.reason() == "Paused")
    basic.forget()
    basic.world.data_plane.hang(NAMESPACE, "basic-tidb-0")
    basic.run(60.0)

    assert ["create events ", "patch tidbclusters.pingcap.com/status basic"] == sorted(set(basic.writes()))
    assert {"NoTiDBServer", "Paused"} == {each["reason"] for each in basic.events() if each["type"] == "Warning"}
    assert [] == basic.operator.dataplane.writes()
    assert not basic.cluster()["status"]["tidb"]["members"]["basic-tidb-0"].get("health")
    basic.world.data_plane.hang(NAMESPACE, "basic-tidb-0", hung=False)
    basic.change(paused=False)
    basic.run_until_ready()
    assert 2 == basic.replicas("tidb")


@pytest.mark.rule("3.2")
def test_does_not_bootstrap_a_paused_cluster(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["paused"] = True
    world.apply(cluster)
    world.run(40.0)
    assert "Paused" == world.reason()
    assert [] == written(world)


@pytest.mark.rule("3.1")
def test_recovery_mode_holds_tikv_until_its_volumes_are_there_and_tidb_to_the_end(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["recoveryMode"] = True
    world.apply(cluster)
    world.run_until(lambda: world.reason() == "WaitingForVolumes")
    assert not world.exists(STATEFUL_SETS, "basic-tikv")

    ready = {"metadata": {"annotations": {"tidb.pingcap.com/tikv-volumes-ready": "true"}}}
    world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, ready)
    world.run_until(lambda: world.reason() == "WaitingForRestore")
    assert not world.exists(STATEFUL_SETS, "basic-tidb")

    world.change(recoveryMode=False)
    world.run_until_ready()
