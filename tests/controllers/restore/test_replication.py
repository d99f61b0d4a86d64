"""A restore to a point in time in two steps, beside a compaction (RPL-1 … RPL-16)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import COMPACT_BACKUPS, JOBS, RESTORES
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld
from tests.controllers.restore.test_point_in_time import OFF, PITR, tikv

FIRST, SECOND = "demo-snapshot-restore", "demo-log-restore"
MARKS = ("SnapshotRestored", "CompactSettled")


@pytest.fixture
def restores() -> Iterator[BackupsWorld]:
    """Restores into a cluster whose TiKV keeps its garbage."""
    world = BackupsWorld(RESTORES)
    try:
        tikv(world, OFF)
        yield world
    finally:
        world.stop()


def begin(world: BackupsWorld, timeout: str | None = None, **spec: Any) -> None:
    """Create the Restore, which waits for the CompactBackup `logs`."""
    config = {"compactBackupName": "logs"} | ({"waitTimeout": timeout} if timeout else {})
    world.add(replicationConfig=config, **PITR, **spec)


def compact(world: BackupsWorld, state: str = "", message: str = "", **spec: Any) -> None:
    """Create the CompactBackup, without its own controller's work, or change its state."""
    body = tree("CompactBackup", by_br(startTs="7", endTs="9", **spec), name="logs", namespace=NAMESPACE)
    if world.admin.find(COMPACT_BACKUPS, "logs", NAMESPACE) is None:
        world.admin.create(COMPACT_BACKUPS, body, NAMESPACE)
    if state:
        status = {"state": state, "message": message}
        world.admin.patch(COMPACT_BACKUPS, "logs", NAMESPACE, {"status": status})
    world.run(1)


def steps(world: BackupsWorld) -> list[str]:
    """The Jobs of the Restore."""
    return sorted(each for each in world.jobs() if each.startswith("demo-") or each == "restore-demo")


def marks(world: BackupsWorld) -> list[str]:
    """The reasons of the marks that are set."""
    return [reason for kind in MARKS for status, reason, _ in [world.condition(kind)] if status == "True"]


def stand(world: BackupsWorld) -> tuple[str, str]:
    return world.phase(), str(world.status().get("replicationStep") or "")


@pytest.mark.rule("RPL-4", "RPL-10")
def test_the_first_step_restores_the_snapshot_beside_the_compaction(restores: BackupsWorld) -> None:
    compact(restores, "Running")
    begin(restores)
    assert ([FIRST], ("SnapshotRestore", "snapshot-restore")) == (steps(restores), stand(restores))
    job = restores.job(FIRST)
    uid = restores.backup()["metadata"]["uid"]
    labels = {"tidb.pingcap.com/replication-step": "snapshot-restore", "tidb.pingcap.com/restore-uid": uid}
    for each in (job, job["spec"]["template"]):
        assert labels.items() <= each["metadata"]["labels"].items()
    arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert ["--mode=pitr", "--pitrRestoredTs=9", "--replicationPhase=1"] == arguments[-3:]
    assert restores.status()["timeStarted"]
    assert "SnapshotRestoreStarted" in [reason for reason, _ in restores.events()]


@pytest.mark.rule("RPL-4", "RPL-6", "RPL-15")
@pytest.mark.parametrize("is_compacted_first", [True, False])
def test_the_log_is_restored_after_both_the_snapshot_and_the_compaction(
    restores: BackupsWorld, *, is_compacted_first: bool
) -> None:
    compact(restores, "Running")
    begin(restores)
    ends: list[Callable[[], None]] = [
        lambda: restores.end(FIRST, "Complete", "CompletionsReached"),
        lambda: compact(restores, "Complete"),
    ]
    one, other = reversed(ends) if is_compacted_first else ends
    one()
    assert ([FIRST], 1, "SnapshotRestore") == (steps(restores), len(marks(restores)), restores.phase())
    other()
    assert [SECOND, FIRST] == steps(restores)
    assert ["JobComplete", "AllShardsComplete"] == marks(restores)
    assert (("LogRestore", "log-restore"), "GatePassed") == (stand(restores), restores.condition("LogRestore")[1])
    arguments = restores.job(SECOND)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--replicationPhase=2" == arguments[-1]
    restores.say("Running")
    restores.say("Complete", commitTs="9")
    restores.end(SECOND, "Complete", "CompletionsReached")
    assert ("Complete", "log-restore") == stand(restores)


@pytest.mark.rule("RPL-7")
def test_says_that_it_waits_for_the_compaction(restores: BackupsWorld) -> None:
    compact(restores, "Running")
    begin(restores)
    restores.end(FIRST, "Complete", "CompletionsReached")
    restores.run(10)
    status, reason, message = restores.condition("Waiting")
    assert ("True", "WaitingForCompaction") == (status, reason)
    assert message.startswith("waiting for CompactBackup lab/logs to end, after which the log is restored; its state")
    before = restores.backup()
    restores.run(600, step=30)
    assert before == restores.backup()


@pytest.mark.rule("RPL-7")
@pytest.mark.parametrize(
    ("state", "spec", "reason"),
    [
        ("Failed", {}, "ShardsPartialFailed"),
        ("Running", {"s3": S3 | {"prefix": "other"}}, "CompactBackupMismatch"),
        ("Running", {"br": {"cluster": "other"}}, "CompactBackupMismatch"),
        ("Running", {"br": {"cluster": "basic", "clusterNamespace": NAMESPACE}}, ""),
        ("Running", {"s3": S3 | {"secretName": "other", "storageClass": "COLD"}}, ""),
        ("RetryFailed", {}, ""),
    ],
)
def test_a_compaction_that_changes_nothing_more_is_settled(
    restores: BackupsWorld, state: str, spec: Json, reason: str
) -> None:
    compact(restores, state, "shard 1: no such file", **spec)
    begin(restores)
    restores.end(FIRST, "Complete", "CompletionsReached")
    assert ["JobComplete", *filter(None, [reason])] == marks(restores)
    assert ([SECOND, FIRST] if reason else [FIRST]) == steps(restores)
    if reason == "ShardsPartialFailed":
        assert restores.condition("CompactSettled")[2].endswith("uses what it has compacted: shard 1: no such file")


@pytest.mark.rule("RPL-7")
def test_a_compaction_that_is_not_created_in_time_is_done_without(restores: BackupsWorld) -> None:
    begin(restores, "10m")
    restores.end(FIRST, "Complete", "CompletionsReached")
    restores.run(10)
    status, reason, message = restores.condition("Waiting")
    assert ("True", "CompactBackupNotFound") == (status, reason)
    assert message.endswith("create it; after 10m the log is restored without it")
    restores.run(580, step=10)
    assert [FIRST] == steps(restores)
    restores.run(30)
    assert ([SECOND, FIRST], ["JobComplete", "CompactBackupWaitTimeout"]) == (steps(restores), marks(restores))


@pytest.mark.rule("RPL-3", "RPL-7")
def test_waits_without_end_for_a_compaction_if_no_timeout_is_set_and_sees_its_creation(restores: BackupsWorld) -> None:
    begin(restores)
    restores.end(FIRST, "Complete", "CompletionsReached")
    restores.run(7200, step=60)
    assert ([FIRST], "CompactBackupNotFound") == (steps(restores), restores.condition("Waiting")[1])
    compact(restores, "Complete")
    assert [SECOND, FIRST] == steps(restores)


@pytest.mark.rule("RPL-4", "RPL-5", "RPL-15")
@pytest.mark.parametrize(("is_second", "reason"), [(False, "SnapshotRestoreFailed"), (True, "LogRestoreFailed")])
def test_a_failed_job_fails_the_restore_and_names_its_step(
    restores: BackupsWorld, *, is_second: bool, reason: str
) -> None:
    """v1.7 sees a dead Job of the second step only if the CompactBackup changes."""
    compact(restores, "Complete")
    begin(restores)
    if is_second:
        restores.end(FIRST, "Complete", "CompletionsReached")
        restores.say("Running")
    name = SECOND if is_second else FIRST
    restores.end(name)
    assert ("Failed", name.removeprefix("demo-")) == stand(restores)
    assert ("True", reason, f"Job {name} has failed: BackoffLimitExceeded: why") == restores.condition("Failed")


@pytest.mark.rule("RPL-16")
def test_a_failed_step_is_pruned_when_its_job_has_ended(restores: BackupsWorld) -> None:
    compact(restores, "Complete")
    begin(restores, prune="afterFailed")
    restores.say("Failed")
    assert "restore-demo-prune" not in restores.jobs(), "the pod of the first step may still write"
    restores.end(FIRST)
    assert "restore-demo-prune" in restores.jobs()


def test_a_deleted_job_of_the_first_step_has_failed_unless_it_was_done(restores: BackupsWorld) -> None:
    compact(restores, "Running")
    begin(restores)
    restores.end(FIRST, "Complete", "CompletionsReached")
    restores.admin.delete(JOBS, FIRST, NAMESPACE, propagation="Background")
    restores.run(30)
    assert "SnapshotRestore" == restores.phase()
    compact(restores, "Complete")
    assert [SECOND] == steps(restores)
    restores.admin.delete(JOBS, SECOND, NAMESPACE, propagation="Background")
    restores.run(30)
    assert ("Failed", "JobDeleted") == (restores.phase(), restores.condition("Failed")[1])


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 10))
def test_a_new_process_continues_after_a_crash_at_any_point(restores: BackupsWorld, at: int) -> None:
    compact(restores, "Complete")
    config = {"compactBackupName": "logs"}
    spec = by_br(replicationConfig=config, **PITR)
    restores.admin.create(RESTORES, tree("Restore", spec, namespace=NAMESPACE), NAMESPACE)
    for _ in range(at):
        restores.operator.step()
        restores.world.settle()
    restores.restart()
    restores.run(20)
    assert [FIRST] == steps(restores)
    restores.end(FIRST, "Complete", "CompletionsReached")
    assert ([SECOND, FIRST], "log-restore") == (steps(restores), stand(restores)[1])


@pytest.mark.rule("RPL-1", "RPL-12")
@pytest.mark.parametrize(
    ("spec", "name", "problem"),
    [
        ({"restoreMode": "snapshot"}, "demo", "spec.replicationConfig: needs spec.restoreMode pitr"),
        ({}, "a" * 47, "use at most 46 characters"),
        ({"replicationConfig": {"compactBackupName": ""}}, "demo", "spec.replicationConfig.compactBackupName"),
        (
            {"replicationConfig": {"compactBackupName": "a", "waitTimeout": "soon"}},
            "demo",
            "spec.replicationConfig.waitTimeout",
        ),
    ],
)
def test_what_cannot_work_is_invalid(restores: BackupsWorld, spec: Json, name: str, problem: str) -> None:
    whole = by_br(replicationConfig={"compactBackupName": "logs"}, **PITR) | spec
    restores.admin.create(RESTORES, tree("Restore", whole, name=name, namespace=NAMESPACE), NAMESPACE)
    restores.run(2)
    assert problem in restores.condition("Invalid", name)[2]
    assert [] == restores.jobs()


@pytest.mark.parametrize("config", [{"compactBackupName": ""}, {"compactBackupName": "none", "waitTimeout": "soon"}])
def test_an_edit_that_is_invalid_does_not_stop_a_step_that_has_begun(restores: BackupsWorld, config: Json) -> None:
    begin(restores)
    restores.admin.patch(RESTORES, "demo", NAMESPACE, {"spec": {"replicationConfig": config}})
    restores.run(20)
    assert ("SnapshotRestore", "CompactBackupNotFound") == (restores.phase(), restores.condition("Waiting")[1])


def test_a_restore_without_the_field_has_the_one_job_that_it_had(restores: BackupsWorld) -> None:
    restores.add(**PITR)
    assert (["restore-demo"], ("Scheduled", "")) == (restores.jobs(), stand(restores))
