"""An invalid spec is reported once, and the last valid one holds until a correction (lifecycle.md 2.2, I28)."""

from typing import Any

import pytest

from kube.resources import CONFIG_MAPS, PODS, SERVICES, STATEFUL_SETS
from member.labels import WRITTEN_FOR
from tests.operator_world import OperatorWorld, sample


def refused(world: OperatorWorld) -> str:
    world.run_until(lambda: world.reason() == "InvalidSpec")
    condition = world.condition("Progressing")
    assert "False" == condition["status"]
    return str(condition["message"])


def told(world: OperatorWorld) -> list[int]:
    """The number of times that each validation event was recorded."""
    return [event["count"] for event in world.events("FailedValidation")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"tikv": {"requests": {"storage": None}}}, "spec.tikv.requests.storage"),
        ({"tikv": {"evictLeaderTimeout": "soon"}}, "spec.tikv.evictLeaderTimeout"),
        ({"pd": {"config": "a = "}}, "spec.pd.config"),
        ({"pd": {"config": {"replication": {"max-replicas": 5}}}}, "spec.pd.config.replication"),
        ({"tikv": {"config": None}}, "spec.tikv.config"),
    ],
    ids=["storage", "duration", "toml", "immutable", "emptied"],
)
@pytest.mark.rule("I28")
def test_an_invalid_spec_causes_one_condition_and_one_event(
    basic: OperatorWorld, spec: dict[str, Any], named: str
) -> None:
    basic.change(discovery={"labels": {"owner": "me"}}, **spec)
    assert named in refused(basic)
    basic.run(100.0)

    assert ["create events ", "patch tidbclusters.pingcap.com/status basic"] == sorted(basic.writes())
    assert {"GET"} == {request.method for request in basic.operator.dataplane.requests}
    assert [1] == told(basic)
    assert named in basic.events("FailedValidation")[0]["message"]


@pytest.mark.rule("I28")
def test_a_new_process_does_not_repeat_the_event(basic: OperatorWorld) -> None:
    basic.change(tikv={"evictLeaderTimeout": "soon"})
    refused(basic)
    basic.restart()
    basic.forget()
    basic.run(40.0)
    assert ([], [1]) == (basic.writes(), told(basic))


@pytest.mark.slow
@pytest.mark.rule("I28")
def test_a_different_invalid_spec_causes_a_new_event(basic: OperatorWorld) -> None:
    basic.change(tikv={"evictLeaderTimeout": "soon"})
    refused(basic)
    basic.change(tikv={"evictLeaderTimeout": "later"})
    basic.run_until(lambda: len(told(basic)) == 2)
    basic.run(40.0)
    assert [1, 1] == told(basic)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-2.2")
def test_applies_a_corrected_spec(basic: OperatorWorld) -> None:
    basic.change(tikv={"evictLeaderTimeout": "soon"})
    refused(basic)
    basic.change(tikv={"evictLeaderTimeout": "1m"}, tidb={"replicas": 2})
    basic.run_until_ready()
    assert 2 == basic.replicas("tidb")


@pytest.mark.rule("lifecycle-2.2")
def test_does_not_bootstrap_an_invalid_cluster(world: OperatorWorld) -> None:
    cluster = sample("basic")
    del cluster["spec"]["version"]
    world.apply(cluster)
    assert "spec.version" in refused(world)
    assert ("False", True) == ready(world, "spec.version")
    world.run(40.0)
    assert ["create events ", "patch tidbclusters.pingcap.com/status basic"] == sorted(world.writes())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"tlsCluster": {"enabled": True}}, "spec.tlsCluster.enabled"),
        ({"tidb": {"config": "[status]\nstatus-port = 10090\n"}}, "spec.tidb.config.status.status-port"),
        ({"tidb": {"config": "port = 4001\n"}}, "spec.tidb.config.port: 4001: must be 4000"),
        ({"tidb": {"arguments": ["--report-status=false"]}}, "spec.tidb.arguments[0]"),
        (
            {"tikv": {"config": "server.advertise-status-addr = '10.0.0.1:20180'"}},
            "spec.tikv.config.server.advertise-status-addr",
        ),
    ],
    ids=["TLS", "status port", "port", "arguments", "TiKV"],
)
@pytest.mark.rule("R25")
def test_refuses_changes_that_other_components_cannot_follow(
    basic: OperatorWorld, spec: dict[str, Any], named: str
) -> None:
    basic.change(pd={"replicas": 3})
    basic.run_until_ready()
    before, was = pods(basic), basic.cluster()["spec"]
    basic.change(**spec)
    assert named in refused(basic)
    basic.run(100.0)
    assert (before, True) == (pods(basic), basic.is_ready())

    parts = {
        part: {key: was[part].get(key) for key in ("config", "arguments") if key in changed}
        for part, changed in spec.items()
        if part != "tlsCluster"
    }
    basic.change(tlsCluster=None, **parts)
    basic.run_until_ready()
    assert before == pods(basic)


def pods(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


INVALID: dict[str, Any] = {"tikv": {"evictLeaderTimeout": "soon", "replicas": 5}, "tidb": {"version": "v9.0.0"}}
FIELD = "spec.tikv.evictLeaderTimeout"


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "new process"])
def test_losses_under_an_invalid_spec_show_in_the_status_and_are_repaired(
    basic: OperatorWorld, restarted: bool
) -> None:
    basic.change(**INVALID)
    refused(basic)
    if restarted:
        basic.restart()
    before = pods(basic)
    for pod in before:
        basic.admin.delete(PODS, pod, "default")
    basic.run_until(lambda: basic.condition("Ready")["status"] == "False", within=10.0)
    assert FIELD in basic.condition("Ready")["message"]

    basic.run_until(lambda: basic.condition("Ready")["status"] == "True")
    assert FIELD in basic.condition("Ready")["message"]
    assert {name for name in before if "discovery" not in name} <= pods(basic).keys()
    assert (1, 1) == (basic.replicas("tikv"), basic.replicas("tidb"))


@pytest.mark.slow
def test_recreates_deleted_objects_from_the_last_valid_spec(basic: OperatorWorld) -> None:
    basic.change(**INVALID)
    refused(basic)
    before = basic.get(STATEFUL_SETS, "basic-tidb")["spec"]
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", "default")
    basic.admin.delete(SERVICES, "basic-pd", "default")
    basic.run_until(lambda: basic.exists(SERVICES, "basic-pd") and basic.exists(STATEFUL_SETS, "basic-tidb"))
    assert before == basic.get(STATEFUL_SETS, "basic-tidb")["spec"]


@pytest.mark.slow
def test_recreates_the_config_map_of_existing_pods(basic: OperatorWorld) -> None:
    basic.change(**INVALID)
    refused(basic)
    (name,) = (each for each in config_maps(basic) if each.startswith("basic-tikv"))
    data = basic.get(CONFIG_MAPS, name)["data"]
    basic.admin.delete(CONFIG_MAPS, name, "default")
    basic.admin.delete(PODS, "basic-tikv-0", "default")
    basic.run_until(lambda: ready(basic, FIELD) == ("False", True), within=10.0)
    basic.run_until(lambda: ready(basic, FIELD) == ("True", True), within=90.0)
    assert data == basic.get(CONFIG_MAPS, name)["data"]


@pytest.mark.slow
def test_the_cause_of_a_pending_pod_follows_the_error_in_the_spec(basic: OperatorWorld) -> None:
    basic.change(**INVALID)
    refused(basic)
    basic.restart()
    (name,) = (each for each in config_maps(basic) if each.startswith("basic-tikv"))
    basic.admin.delete(CONFIG_MAPS, name, "default")
    basic.admin.delete(PODS, "basic-tikv-0", "default")
    basic.run(60.0)
    said = basic.condition("Ready")["message"]
    assert ("False", True) == ready(basic, FIELD)
    assert (
        f'waiting for basic-tikv-0 (FailedMount: MountVolume.SetUp failed for volume "config" : configmap "{name}"'
        in said
    )


def config_maps(world: OperatorWorld) -> list[str]:
    return [each["metadata"]["name"] for each in world.every(CONFIG_MAPS)]


@pytest.mark.slow
def test_a_new_process_without_the_last_valid_spec_names_missing_objects(basic: OperatorWorld) -> None:
    basic.change(**INVALID)
    refused(basic)
    basic.restart()
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", "default")
    basic.run_until(lambda: basic.condition("Ready")["status"] == "False")
    basic.run(60.0)
    (news,) = (each for each in basic.cluster()["status"]["tidb"]["conditions"] if each["type"] == "Progressing")
    assert ("InvalidSpec", True) == (news["reason"], "basic-tidb is gone" in news["message"])
    assert not basic.exists(STATEFUL_SETS, "basic-tidb")

    basic.change(tikv={"evictLeaderTimeout": "1m", "replicas": 1}, tidb={"version": None})
    basic.run_until_ready()


@pytest.mark.slow
@pytest.mark.parametrize("restarted", ["before", "after"])
def test_a_new_process_reports_that_nothing_serves_if_every_workload_is_gone(
    basic: OperatorWorld, restarted: str
) -> None:
    basic.change(**INVALID)
    refused(basic)
    if restarted == "before":
        basic.restart()
    for each in basic.every(STATEFUL_SETS):
        basic.admin.delete(STATEFUL_SETS, each["metadata"]["name"], "default")
    if restarted == "after":
        basic.restart()
    basic.run_until(lambda: ready(basic, FIELD) == ("False", True), within=10.0)
    basic.run(60.0)
    assert [0, 0, 0] == [ready_replicas(basic, part) for part in ("pd", "tikv", "tidb")]

    basic.change(tikv={"evictLeaderTimeout": "1m", "replicas": 1}, tidb={"version": None})
    basic.run_until_ready(within=180.0)


@pytest.mark.slow
def test_reads_workloads_of_a_version_without_notes_by_the_present_spec(
    basic: OperatorWorld,
) -> None:
    for each in basic.every(STATEFUL_SETS):
        forgotten = {"metadata": {"annotations": {WRITTEN_FOR: None}}}
        basic.admin.patch(STATEFUL_SETS, each["metadata"]["name"], "default", forgotten)
    basic.change(tikv={"evictLeaderTimeout": "soon"})
    basic.restart()
    basic.run_until(lambda: ready(basic, FIELD) == ("True", True), within=10.0)
    for pod in pods(basic):
        basic.admin.delete(PODS, pod, "default")
    basic.run_until(lambda: ready(basic, FIELD) == ("False", True), within=10.0)
    basic.run_until(lambda: ready(basic, FIELD) == ("True", True))


def ready(world: OperatorWorld, field: str) -> tuple[str, bool]:
    """The status of Ready, and True if its message names the field."""
    condition = world.condition("Ready")
    return condition["status"], field in condition["message"]


def ready_replicas(world: OperatorWorld, component: str) -> int:
    return int(world.cluster()["status"][component]["statefulSet"]["readyReplicas"])


@pytest.mark.slow
@pytest.mark.parametrize("paused_before", [True, False], ids=["before", "in the invalid spec"])
def test_recreates_nothing_of_a_paused_cluster(basic: OperatorWorld, paused_before: bool) -> None:
    if paused_before:
        basic.change(paused=True)
        basic.run_until(lambda: basic.reason() == "Paused")
    basic.change(paused=True, **INVALID)
    assert FIELD in refused(basic)
    basic.admin.delete(STATEFUL_SETS, "basic-tidb", "default")
    basic.admin.delete(SERVICES, "basic-pd", "default")
    basic.run_until(lambda: basic.condition("Ready")["status"] == "False")
    basic.run(60.0)
    assert not basic.exists(STATEFUL_SETS, "basic-tidb")
    assert not basic.exists(SERVICES, "basic-pd")

    basic.change(paused=False, tikv={"evictLeaderTimeout": "1m", "replicas": 1}, tidb={"version": None})
    basic.run_until_ready()


@pytest.mark.slow
def test_an_invalid_spec_stops_a_scale_in(basic: OperatorWorld) -> None:
    basic.change(tikv={"replicas": 4})
    basic.run_until_ready()
    basic.change(tikv={"replicas": 3})
    basic.run(1.0)
    basic.change(tikv={"replicas": 3, "evictLeaderTimeout": "soon"})
    refused(basic)
    basic.run(60.0)
    basic.forget()
    basic.run(200.0)
    assert [] == [write for write in basic.writes() if "statefulsets" in write]
