"""A sharded CompactBackup: one pod for each shard, and one end for all of them (CMP-2 … CMP-15)."""

from typing import Any

import pytest

from kube.objects import Json
from kube.resources import BACKUPS, COMPACT_BACKUPS, JOBS, PODS, SECRETS
from ports.clock import FakeClock
from tests.apis.backups import by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld
from tests.controllers.compact_backup.test_compactions import SPAN, add_log, state
from tests.older_kubernetes import Older
from tests.operator_world import NAMESPACE as OPERATORS
from tests.operator_world import OperatorWorld, sample

KEYS = {"access_key": "QUs=", "secret_key": "U0s="}
SHARDED: dict[str, Any] = {"mode": "sharded", "shardCount": 3, **SPAN}


def report(world: BackupsWorld, **status: str) -> None:
    """Kubernetes writes the status of the Job."""
    world.admin.patch(JOBS, "demo", NAMESPACE, {"status": status}, subresource="status")
    world.run(2)


@pytest.mark.rule("CMP-7", "CMP-8")
def test_the_job_has_a_pod_for_each_shard_and_retries_each_by_itself(world: BackupsWorld) -> None:
    body = tree("CompactBackup", by_br(maxRetryTimes=2, **SHARDED), namespace=NAMESPACE, labels={"team": "a"})
    world.admin.create(COMPACT_BACKUPS, body, NAMESPACE)
    world.run(1)
    job = world.job("demo")
    expected = {
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "maxFailedIndexes": 3,
        "backoffLimitPerIndex": 2,
        "backoffLimit": 2**31 - 1,  # which Kubernetes fills in
    }
    assert expected == {key: job["spec"].get(key) for key in expected}
    assert "Never" == job["spec"]["template"]["spec"]["restartPolicy"]
    labels = {
        "team": "a",
        "app.kubernetes.io/name": "compactbackup",
        "app.kubernetes.io/managed-by": "compact-backup-operator",
        "app.kubernetes.io/instance": "demo",
        "app.kubernetes.io/component": "compactbackup",
        "tidb.pingcap.com/compact": "demo",
    }
    for each in (job, job["spec"]["template"]):
        own = {key: value for key, value in each["metadata"]["labels"].items() if key in labels or "backup" in key}
        assert labels == own
    assert 3 == len(world.admin.list_page(PODS, NAMESPACE).items)


@pytest.mark.rule("CMP-7")
def test_a_compaction_without_the_mode_has_the_job_that_it_had(world: BackupsWorld) -> None:
    world.add(**SPAN)
    spec = world.job("demo")["spec"]
    assert ("NonIndexed", 6, None) == (spec["completionMode"], spec["backoffLimit"], spec.get("maxFailedIndexes"))


@pytest.mark.rule("CMP-14")
def test_the_shards_that_are_complete_and_failed_are_in_the_status_while_the_job_runs(world: BackupsWorld) -> None:
    world.add(**SHARDED)
    world.write(state="Running")
    report(world, completedIndexes="0", failedIndexes="2")
    now = world.status()
    assert ("Running", "0", "2") == (now["state"], now["completedIndexes"], now["failedIndexes"])


@pytest.mark.rule("CMP-14")
def test_a_compaction_is_complete_when_all_shards_are(world: BackupsWorld) -> None:
    world.add(**SHARDED)
    world.write(state="Running", message="shard 1: no such file")
    report(world, completedIndexes="0-2")
    world.end("demo", "Complete", "CompletionsReached")
    now = world.status()
    assert ("Complete", "0-2", None) == (now["state"], now["completedIndexes"], now.get("message"))


@pytest.mark.rule("CMP-15")
def test_a_failed_compaction_says_which_shards_are_usable_and_why_one_failed(world: BackupsWorld) -> None:
    world.add(**SHARDED)
    world.write(state="Running", message="shard 1: no such file")
    report(world, completedIndexes="0,2", failedIndexes="1")
    world.end("demo", "Failed", "FailedIndexes")
    now = world.status()
    message = "Job demo has failed: FailedIndexes; failed shards, from 0: 1; shard 1: no such file"
    assert ("Failed", "0,2", message) == (now["state"], now["completedIndexes"], now["message"])
    assert ("AlreadyFailed", message) in world.events()


@pytest.mark.rule("CMP-14")
def test_a_complete_job_completes_a_compaction_whose_status_was_replaced(world: BackupsWorld) -> None:
    """Without shards the pod has a minute to report the end; v1.6 waits forever."""
    world.add(**SPAN)
    world.write(state="Running")
    world.end("demo", "Complete", "CompletionsReached")
    assert "Running" == state(world)
    world.run(65)
    assert "Complete" == state(world)


@pytest.mark.rule("CMP-6")
@pytest.mark.parametrize(("minor", "expected"), [("28", "Failed"), ("28+", "Failed"), ("29", "Prepare")])
def test_shards_need_kubernetes_1_29(world: BackupsWorld, minor: str, expected: str) -> None:
    world.operator = world.new_operator(3, lambda inner: Older(inner, minor))
    world.add(**SHARDED)
    assert (expected, ["demo"] if expected == "Prepare" else []) == (state(world), world.jobs())
    if expected == "Failed":
        message = 'spec.mode: "sharded": needs Kubernetes 1.29, and this is 1.28; remove the mode'
        assert message == world.status()["message"]


@pytest.mark.rule("CMP-2")
def test_shards_without_an_end_wait_for_the_start_in_the_log(world: BackupsWorld) -> None:
    add_log(world, commitTs="2025-01-01T00:00:00Z", logCheckpointTs="2025-12-31T00:00:00Z")
    world.add(**{key: value for key, value in SHARDED.items() if key != "endTs"})
    world.run(10)
    assert ("Scheduled", []) == (state(world), world.jobs())
    assert "to reach spec.startTs 2026-01-01T00:00:00Z" in world.status()["message"]
    status: Json = {"status": {"logCheckpointTs": "2026-01-01T00:00:01Z"}}
    world.admin.patch(BACKUPS, "log", NAMESPACE, status)
    world.run(15)
    assert ["demo"] == world.jobs()


@pytest.mark.slow
@pytest.mark.rule("CMP-14")
def test_the_whole_operator_sees_the_end_of_the_job(clock: FakeClock) -> None:
    """It watches Jobs by their label managed-by, which has another value for shards."""
    operator = OperatorWorld(clock=clock)
    try:
        operator.apply(sample("basic"))
        operator.run_until_ready()
        operator.admin.create(SECRETS, {"metadata": {"name": "keys"}, "data": KEYS}, OPERATORS)
        spec = by_br(**SHARDED)
        operator.admin.create(COMPACT_BACKUPS, tree("CompactBackup", spec, namespace=OPERATORS), OPERATORS)
        operator.run_until(lambda: operator.exists(JOBS, "demo"), 60)
        said = {"status": "True", "reason": "x", "message": "y", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        conditions = [said | {"type": kind} for kind in ("SuccessCriteriaMet", "Complete")]
        body = {"status": {"completedIndexes": "0-2", "conditions": conditions}}
        operator.admin.patch(JOBS, "demo", OPERATORS, body, subresource="status")
        operator.run(5)
        now = operator.get(COMPACT_BACKUPS, "demo")["status"]
        assert ("Complete", "0-2") == (now["state"], now["completedIndexes"])
    finally:
        operator.stop()
