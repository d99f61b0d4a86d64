"""A restore to a point in time begins when TiKV keeps its garbage (backup.md 4.4)."""

from collections.abc import Iterator

import pytest

from controllers.restore.point_in_time import has_rolled
from kube.objects import Json
from kube.resources import CONFIG_MAPS, RESTORES, STATEFUL_SETS, TIDB_CLUSTERS
from tests.apis.clusters import minimal
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

PITR = {"restoreMode": "pitr", "logRestoreStartTs": "7", "pitrRestoredTs": "9"}
OFF = "[gc]\nratio-threshold = -1.0\n"


@pytest.fixture
def restores() -> Iterator[BackupsWorld]:
    world = BackupsWorld(RESTORES)
    try:
        yield world
    finally:
        world.stop()


def tikv(world: BackupsWorld, text: str, *, replicas: int = 0, cluster: str = "basic") -> None:
    """TiKV after the other controller has changed it; without nodes, its pods never become Ready."""
    name, labels = f"{cluster}-tikv", {"app": "tikv"}
    world.admin.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"config-file": text}}, NAMESPACE)
    pod = {
        "containers": [{"name": "tikv", "image": "tikv"}],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels}, "template": template}
    world.admin.create(STATEFUL_SETS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    world.run(1)


@pytest.mark.parametrize(
    ("text", "replicas", "why"),
    [
        ("", 0, "the ConfigMap of TidbCluster lab/basic does not say so yet"),
        ("[gc]\nratio-threshold = 1.1\n", 0, "the ConfigMap of TidbCluster lab/basic does not say so yet"),
        (OFF, 3, "StatefulSet lab/basic-tikv is still being restarted"),
    ],
)
@pytest.mark.rule("backup-4.4")
def test_waits_until_all_of_tikv_runs_with_the_setting(
    restores: BackupsWorld, text: str, replicas: int, why: str
) -> None:
    tikv(restores, text, replicas=replicas)
    restores.add(**PITR)
    _, reason, message = restores.condition("RetryFailed")
    assert ("WaitingForGCOff", True) == (reason, message.endswith(why))
    restores.run(30)
    assert [] == restores.jobs()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, True),
        ({"observedGeneration": 1}, False),
        ({"updatedReplicas": 2}, False),
        ({"readyReplicas": 2}, False),
        ({"currentRevision": "b"}, True),
        ({"updatedReplicas": 2, "currentRevision": "b"}, False),
    ],
)
@pytest.mark.rule("backup-4.4")
def test_a_roll_ends_with_its_last_pod_even_after_a_rollback(status: Json, *, expected: bool) -> None:
    rolled = {"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3}
    revisions = {"currentRevision": "a", "updateRevision": "b"}
    body = {"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": rolled | revisions | status}
    assert expected is has_rolled(body)


@pytest.mark.rule("backup-4.4")
def test_creates_the_job_once_garbage_collection_is_off(restores: BackupsWorld) -> None:
    restores.add(**PITR)
    assert restores.condition("RetryFailed")[2].endswith("StatefulSet lab/basic-tikv does not exist")
    tikv(restores, OFF)
    restores.run(15)
    assert (["restore-demo"], "Scheduled") == (restores.jobs(), restores.phase())
    arguments = restores.job("restore-demo")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert ["--mode=pitr", "--pitrRestoredTs=9"] == arguments[-2:]


def join(world: BackupsWorld, name: str, host: str = "basic") -> None:
    """A TidbCluster whose TiKV joins the database of another one."""
    spec = {"version": "v8.5.2", "cluster": {"name": host}, "tikv": minimal()["tikv"]}
    body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": name}, "spec": spec}
    world.admin.create(TIDB_CLUSTERS, body, NAMESPACE)


@pytest.mark.parametrize("hosts", [("basic", "basic"), ("basic", "guest-0")])
def test_waits_for_the_stores_that_joined_from_other_clusters(restores: BackupsWorld, hosts: tuple[str, str]) -> None:
    """v1.6 switches garbage collection off for the stores of one TidbCluster of the database."""
    for number, host in enumerate(hosts):
        join(restores, f"guest-{number}", host)
        tikv(restores, "", cluster=f"guest-{number}")
    tikv(restores, OFF)
    restores.add(**PITR)
    for number in (0, 1):
        restores.run(15)
        assert f"TidbCluster lab/guest-{number} does not say so yet" in restores.condition("RetryFailed")[2]
        assert [] == restores.jobs()
        restores.admin.patch(CONFIG_MAPS, f"guest-{number}-tikv", NAMESPACE, {"data": {"config-file": OFF}})
    restores.run(15)
    assert ["restore-demo"] == restores.jobs()


def test_stores_of_a_cluster_that_the_operator_does_not_see_are_named(restores: BackupsWorld) -> None:
    tikv(restores, OFF)
    store = {"id": "9", "podName": "far-tikv-0", "ip": "", "leaderCount": 0, "state": "Up"}
    status = {"status": {"tikv": {"peerStores": {"9": store}}}}
    restores.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, status, subresource="status")
    restores.add(**PITR)
    (message,) = [message for reason, message in restores.events() if reason == "GCNotOff"]
    assert message.startswith("this operator does not see the TidbCluster of the TiKV stores far-tikv-0, ")
    assert ["restore-demo"] == restores.jobs()


def test_a_restore_whose_status_is_replaced_after_its_completion_is_complete(restores: BackupsWorld) -> None:
    """`kubectl replace`; in v1.6 TiKV then no longer collects garbage."""
    tikv(restores, OFF)
    restores.add(**PITR)
    restores.say("Complete", commitTs="9")
    restores.end("restore-demo", "Complete", "CompletionsReached")
    body = restores.backup()
    del body["status"]
    restores.admin.replace(RESTORES, "demo", NAMESPACE, body)
    restores.run(30)
    assert "Complete" != restores.phase()
    restores.run(60)
    assert ("Complete", "StatusReplaced") == (restores.phase(), restores.condition("Complete")[1])
    assert ["restore-demo"] == restores.jobs()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.pitrFullBackupStorageProvider: is required in mode pitr, or spec.logRestoreStartTs"),
        (
            {"logRestoreStartTs": "7", "pitrFullBackupStorageProvider": {"s3": {"provider": "aws", "bucket": "b"}}},
            "can't be combined with spec.logRestoreStartTs in mode pitr; remove one of them",
        ),
    ],
)
@pytest.mark.rule("backup-4.5")
def test_a_snapshot_or_a_start_and_not_both(restores: BackupsWorld, spec: Json, message: str) -> None:
    restores.add(restoreMode="pitr", **spec)
    assert message in restores.condition("Invalid")[2]


@pytest.mark.rule("backup-4.3")
def test_a_failed_restore_is_pruned(restores: BackupsWorld) -> None:
    tikv(restores, OFF)
    restores.add(**PITR, prune="afterFailed")
    restores.say("Failed")
    restores.end("restore-demo")
    assert ["restore-demo", "restore-demo-prune"] == sorted(restores.jobs())
    assert "PruneScheduled" == restores.phase()
    arguments = restores.job("restore-demo-prune")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--abort=true", "--mode=pitr", "--pitrRestoredTs=9"} <= {*arguments}
