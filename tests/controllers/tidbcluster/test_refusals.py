"""What this version does not do: it says so, names the field, and keeps the rest in order."""

import json
from typing import Any

import pytest

from kube.resources import CONFIG_MAPS, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member.labels import LAST_APPLIED
from tests.operator_world import NAMESPACE, OperatorWorld, sample


def pods(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def refusal(world: OperatorWorld) -> str:
    """The message of the refusal, once it is told; an event says the same."""
    world.run_until(lambda: world.reason() == "NotYetSupported")
    condition = world.condition("Progressing")
    assert "False" == condition["status"]
    assert condition["message"] in [event["message"] for event in world.events("NotYetSupported")]
    return str(condition["message"])


def written(world: OperatorWorld) -> list[str]:
    return [write for write in world.writes() if "tidbclusters" not in write and "events" not in write]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (
            {"version": "v8.5.3"},
            'pd: spec.template.spec.containers[0].image: "pingcap/pd:v8.5.2" → "pingcap/pd:v8.5.3"',
        ),
        ({"tikv": {"requests": {"cpu": "2"}}}, "tikv: spec.template.spec.containers[0].resources"),
        ({"tidb": {"annotations": {"a": "b"}}}, "tidb: spec.template.metadata.annotations.a"),
        ({"tikv": {"config": {"log": {"level": "warn"}}}}, "tikv: spec.tikv.config: the configuration changed"),
        ({"pd": {"startTimeout": 60}}, "pd: spec.pd: the start script shows startTimeout"),
        ({"tikv": {"requests": {"storage": "2Gi"}}}, 'storage: "1Gi" → "2Gi"; this version can\'t replace volumes'),
        ({"podManagementPolicy": "OrderedReady"}, 'spec.podManagementPolicy: "Parallel" → "OrderedReady"'),
    ],
    ids=["image", "resources", "pod annotation", "config", "script option", "storage", "pod management"],
)
def test_a_change_that_would_replace_pods_is_refused_and_nothing_is_written(
    basic: OperatorWorld, spec: dict[str, Any], named: str
) -> None:
    before = pods(basic)
    basic.change(**spec)
    assert named in refusal(basic)
    basic.run(40.0)

    assert [] == written(basic)
    assert before == pods(basic)
    assert basic.is_ready()


def test_a_refusal_ends_with_its_reason(basic: OperatorWorld) -> None:
    basic.change(version="v8.5.3")
    refusal(basic)
    basic.change(version="v8.5.2")
    basic.run_until_ready()
    assert [] == written(basic)


def test_8_3_scale_in_is_refused(basic: OperatorWorld) -> None:
    basic.change(tikv={"replicas": 3})
    basic.run_until_ready()
    basic.forget()
    basic.change(tikv={"replicas": 2})
    assert "tikv: spec.tikv.replicas: this version can't scale in, from 3 to 2; " in refusal(basic) + "; "
    basic.run(40.0)
    assert [] == written(basic)
    assert 3 == basic.replicas("tikv")


def test_growing_goes_on_beside_a_refusal(basic: OperatorWorld) -> None:
    basic.change(version="v8.5.3", pd={"replicas": 3}, tikv={"replicas": 2, "requests": {"storage": "2Gi"}})
    before = pods(basic)
    basic.run_until(lambda: (basic.replicas("pd"), basic.replicas("tikv")) == (3, 2))
    basic.run_until(lambda: len(basic.cluster()["status"]["pd"]["members"]) == 3)

    assert "image" in refusal(basic)
    assert before.items() <= pods(basic).items()
    images = {
        container["image"]
        for pod in basic.every(PODS)
        for container in pod["spec"]["containers"]
        if container["name"] in ("pd", "tikv", "tidb")
    }
    assert {"pingcap/pd:v8.5.2", "pingcap/tikv:v8.5.2", "pingcap/tidb:v8.5.2"} == images


def test_6_5_an_in_place_configuration_reaches_the_config_map_and_no_pod(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["configUpdateStrategy"] = "InPlace"
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    world.change(tikv={"config": {"log": {"level": "warn"}}})
    world.run_until(lambda: "warn" in world.get(CONFIG_MAPS, "basic-tikv")["data"]["config-file"])
    world.run_until_ready()

    assert ["patch configmaps basic-tikv"] == written(world)


def test_6_5_a_configuration_that_belongs_to_a_refused_change_waits_for_it(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["configUpdateStrategy"] = "InPlace"
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    world.change(tikv={"config": {"log": {"level": "warn"}}, "version": "v8.5.3"})
    assert "image" in refusal(world)
    assert [] == written(world)


def test_I14_a_roll_that_is_under_way_keeps_its_partition(basic: OperatorWorld) -> None:
    """As when v1.6 is replaced in the middle of one."""
    basic.change(tidb={"replicas": 3})
    basic.run_until_ready()
    live = basic.get(STATEFUL_SETS, "basic-tidb")
    record = json.loads(live["metadata"]["annotations"][LAST_APPLIED])
    for spec in (live["spec"], record):
        spec["template"]["spec"]["containers"][1]["image"] = "pingcap/tidb:v8.5.3"
        spec["updateStrategy"]["rollingUpdate"]["partition"] = 2
    live["metadata"]["annotations"][LAST_APPLIED] = json.dumps(record)
    basic.admin.replace(STATEFUL_SETS, "basic-tidb", NAMESPACE, live)
    basic.change(tidb={"version": "v8.5.3", "replicas": 4})
    basic.run_until(lambda: basic.reason() == "NotYetSupported" and basic.replicas("tidb") == 4)

    assert "tidb: a rolling update is under way" in basic.condition("Progressing")["message"]
    assert 2 == basic.get(STATEFUL_SETS, "basic-tidb")["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
    assert "StatefulSetNotUpToDate" == basic.condition("Ready")["reason"]


def test_parts_that_are_not_managed_yet_are_named(world: OperatorWorld) -> None:
    cluster = sample("basic")
    claim = {"resources": {"requests": {"storage": "1Gi"}}}
    cluster["spec"]["tiflash"] = {"baseImage": "pingcap/tiflash", "replicas": 1, "storageClaims": [claim]}
    cluster["spec"]["ticdc"] = {"baseImage": "pingcap/ticdc", "replicas": 1}
    world.apply(cluster)
    world.run_until(lambda: (world.cluster()["status"].get("tidb") or {}).get("members") is not None)
    world.run(5.0)

    assert "spec: tiflash, ticdc: this version does not manage this yet" in refusal(world)
    assert "TiFlashStoreNotUp" == world.condition("Ready")["reason"]
    assert {"basic-pd", "basic-tikv", "basic-tidb"} == {each["metadata"]["name"] for each in world.every(STATEFUL_SETS)}


def test_3_2_a_paused_cluster_is_observed_and_left_alone(basic: OperatorWorld) -> None:
    basic.change(paused=True, tidb={"replicas": 2}, pd={"service": {"labels": {"owner": "me"}}})
    basic.run_until(lambda: basic.reason() == "Paused")
    basic.forget()
    basic.world.data_plane.hang(NAMESPACE, "basic-tidb-0")
    basic.run(60.0)

    assert ["patch tidbclusters.pingcap.com/status basic"] == sorted(set(basic.writes()))
    assert [] == basic.operator.dataplane.writes()
    assert not basic.cluster()["status"]["tidb"]["members"]["basic-tidb-0"].get("health")
    basic.world.data_plane.hang(NAMESPACE, "basic-tidb-0", hung=False)
    basic.change(paused=False)
    basic.run_until_ready()
    assert 2 == basic.replicas("tidb")


def test_3_2_a_paused_cluster_is_not_even_begun(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["paused"] = True
    world.apply(cluster)
    world.run(40.0)
    assert "Paused" == world.reason()
    assert [] == written(world)


def test_12_suspending_is_refused_and_keeps_the_component_as_it_is(basic: OperatorWorld) -> None:
    basic.change(tidb={"suspendAction": {"suspendStatefulSet": True}, "replicas": 2}, tikv={"replicas": 2})
    assert "tidb: spec.tidb.suspendAction: this version can't suspend" in refusal(basic)
    basic.run_until(lambda: basic.replicas("tikv") == 2)
    assert 1 == basic.replicas("tidb")


def test_3_1_recovery_mode_holds_tikv_until_its_volumes_are_there_and_tidb_to_the_end(world: OperatorWorld) -> None:
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
