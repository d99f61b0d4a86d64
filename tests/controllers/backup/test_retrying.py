"""A failed Job of a snapshot is recreated as often and as long as the policy allows (backup.md 3.7)."""

from datetime import timedelta

import pytest

from kube.resources import BACKUPS, JOBS, PODS, TIDB_CLUSTERS
from tests.apis.backups import S3
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

WHY = "failed reason Job backup-demo has failed, original reason BackoffLimitExceeded"


def records(backups: BackupsWorld) -> list[tuple[int, bool]]:
    """The number of each record, and whether its Job was recreated."""
    found = backups.status().get("backoffRetryStatus") or []
    return [(each["retryNum"], "realRetryAt" in each) for each in found]


@pytest.mark.slow
def test_a_failed_job_is_recreated_after_its_pause(backups: BackupsWorld) -> None:
    backups.add()
    first = backups.job()["metadata"]["uid"]
    backups.run(10)
    backups.end()
    record = backups.status()["backoffRetryStatus"][0]
    assert ("Job backup-demo has failed", "BackoffLimitExceeded") == (record["retryReason"], record["originalReason"])
    assert ([(1, False)], "Scheduled") == (records(backups), backups.phase())

    backups.run(295)
    assert first == backups.job()["metadata"]["uid"]
    backups.run(20)
    assert first != backups.job()["metadata"]["uid"]
    assert ([(1, True)], "Scheduled") == (records(backups), backups.phase())
    assert "True" == backups.condition("Restart")[0]
    assert ("RetryFailedBackup", WHY) == backups.condition("RetryFailed")[1:]


def test_the_pause_doubles_and_the_third_failure_is_the_end(backups: BackupsWorld) -> None:
    backups.add()
    backups.end()
    backups.run(310)
    backups.end()
    assert [(1, True), (2, False)] == records(backups)
    backups.run(590)
    assert [(1, True), (2, False)] == records(backups)
    backups.run(20)
    assert [(1, True), (2, True)] == records(backups)
    backups.end()
    message = f"exceed retry times, max is 2, {WHY}"
    assert ("True", "AlreadyFailed", message) == backups.condition("Failed")
    before = backups.backup()
    backups.run(7200)
    assert before == backups.backup()


def test_a_clock_that_is_put_back_does_not_put_a_retry_off(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Running")
    backups.clock.jump(timedelta(days=30))
    backups.end()
    backups.clock.jump(-timedelta(days=30))
    backups.run(400)
    assert ([(1, True)], "Scheduled") == (records(backups), backups.phase())


def test_after_the_time_for_retries_it_has_failed(backups: BackupsWorld) -> None:
    backups.add(backoffRetryPolicy={"maxRetryTimes": 9, "minRetryDuration": "60s", "retryTimeout": "5m"})
    backups.end()
    backups.run(70)
    backups.run(400)
    backups.end()
    message = f"retry timeout, max is 5m, {WHY}"
    assert ("True", "AlreadyFailed", message) == backups.condition("Failed")


def test_a_backup_without_retries_gets_none(backups: BackupsWorld) -> None:
    """v1.6 has no such setting (3.7)."""
    backups.add(backoffRetryPolicy={"maxRetryTimes": 0})
    backups.end()
    assert ("True", "AlreadyFailed", f"exceed retry times, max is 0, {WHY}") == backups.condition("Failed")
    assert ["backup-demo"] == backups.jobs()


def test_a_failure_reported_by_the_pod_is_not_retried(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Failed")
    backups.end()
    assert [] == records(backups)


def test_the_next_pod_waits_for_the_end_of_the_previous_one(backups: BackupsWorld) -> None:
    """Two BRs that write to one prefix would spoil the backup."""
    backups.add()
    assert 1 == backups.pods()
    backups.end()
    for _ in range(330):
        backups.run(1)
        assert backups.pods() <= 1
    assert 1 == backups.pods()


def keep_pod(backups: BackupsWorld) -> str:
    """Let the Job's pod run on a machine that does not answer, so that it never ends; returns its name."""
    (pod,) = backups.admin.list_page(PODS, NAMESPACE).items
    finalizers = {"metadata": {"finalizers": ["tests/kept"]}}
    backups.admin.patch(PODS, pod.metadata.name, NAMESPACE, finalizers)
    running = {"status": {"phase": "Running"}}
    backups.admin.patch(PODS, pod.metadata.name, NAMESPACE, running, subresource="status")
    return pod.metadata.name


def test_a_pod_that_does_not_end_is_named_while_the_retry_waits_for_it(backups: BackupsWorld) -> None:
    backups.add()
    name = keep_pod(backups)
    backups.end()
    backups.run(340, step=5.0)
    assert ("RetryFailed", "RetryFailedBackup") == (backups.phase(), backups.condition("RetryFailed")[1])
    backups.run(100, step=5.0)
    message = f"pod {name} does not end, and may still write; if its machine is gone for good, delete the Node object"
    assert ("True", "NodeLost", message) == backups.condition("RetryFailed")
    before = backups.backup()
    backups.run(100, step=5.0)
    assert before == backups.backup()
    backups.admin.patch(PODS, name, NAMESPACE, {"metadata": {"finalizers": None}})
    backups.run(30)
    assert "Scheduled" == backups.phase()


@pytest.mark.parametrize("phase", ["Scheduled", "Running"])
def test_a_pod_that_does_not_end_is_named_though_its_job_has_not_failed_yet(backups: BackupsWorld, phase: str) -> None:
    """Kubernetes says Failed when the last pod has ended, and FailureTarget until then."""
    backups.add()
    name = keep_pod(backups)
    backups.say(phase)
    backups.admin.delete(PODS, name, NAMESPACE)
    backups.admin.patch(PODS, name, NAMESPACE, {"status": {"conditions": None}}, subresource="status")
    said = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}
    backups.admin.patch(JOBS, "backup-demo", NAMESPACE, {"status": {"conditions": [said]}}, subresource="status")
    backups.run(200, step=5.0)
    assert ("True", "NodeLost") == backups.condition(phase)[:2]
    before = backups.backup()
    backups.run(100, step=5.0)
    assert before == backups.backup()


def test_a_failed_job_that_is_deleted_before_the_retry_costs_no_retry(backups: BackupsWorld) -> None:
    backups.add()
    backups.end()
    backups.admin.delete(JOBS, "backup-demo", NAMESPACE, propagation="Background")
    backups.run(280)
    assert ([(1, False)], []) == (records(backups), backups.jobs())
    backups.run(40)
    assert ([(1, True)], ["backup-demo"], "Scheduled") == (records(backups), backups.jobs(), backups.phase())


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6])
def test_a_new_process_continues_after_a_crash_at_any_write(backups: BackupsWorld, at: int) -> None:
    """Whichever write was the last, the end is one record and one more Job."""
    backups.add()
    backups.end()
    backups.restart()
    backups.world.advance(305.0)
    for _ in range(at):
        backups.operator.step()
        backups.world.settle()
    backups.restart()
    backups.run(60)
    assert ([(1, True)], "Scheduled") == (records(backups), backups.phase())
    assert ["backup-demo"] == backups.jobs()


def test_a_cache_that_still_shows_the_failed_job_counts_it_once(backups: BackupsWorld) -> None:
    backups.add()
    backups.end()
    first = backups.job()["metadata"]["uid"]
    backups.operator.caches[JOBS].blind = True
    backups.run(420)
    assert ([(1, True)], True) == (records(backups), first != backups.job()["metadata"]["uid"])


def test_an_invalid_policy_is_reported_and_retried_after_a_correction(backups: BackupsWorld) -> None:
    backups.add()
    wrong = {"spec": {"backoffRetryPolicy": {"minRetryDuration": "soon"}}}
    backups.admin.patch(BACKUPS, "demo", NAMESPACE, wrong)
    backups.end()
    message = 'spec.backoffRetryPolicy.minRetryDuration: "soon": must be a duration such as 90s, 10m or 1h30m'
    assert ("True", "InvalidSpec", message) == backups.condition("Invalid")
    backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"backoffRetryPolicy": {"minRetryDuration": "60s"}}})
    backups.run(70)
    assert ([(1, True)], "Scheduled") == (records(backups), backups.phase())


@pytest.mark.parametrize(
    ("version", "path", "failed"),
    [("v6.1.0", "full", True), ("v6.5.1", "full", False), ("v6.1.0", "before", False)],
)
def test_a_retry_that_starts_over_removes_no_files_that_others_have_added_since(
    backups: BackupsWorld, version: str, path: str, *, failed: bool
) -> None:
    """BR that knows checkpoints removes nothing, nor does a pod whose spec names another place than the last one's."""
    backups.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"spec": {"version": version}})
    backups.add(backoffRetryPolicy={"minRetryDuration": "60s"})
    backups.say("Running", backupPath=f"s3://lab/{path}")
    backups.add("log", backupMode="log", s3=S3 | {"prefix": "full/log"})
    backups.end()
    backups.run(120)
    message = (
        "BR before v6.5.1 begins anew by removing all that is below s3://lab/full, and Backup lab/log needs some of "
        "it; make another Backup, with a prefix of its own"
    )
    assert (("True", "FilesInUse", message) if failed else ("", "", "")) == backups.condition("Failed")
    assert failed is not ("backup-demo" in backups.jobs())
