"""A CompactBackup gets one Job, and is tried again with growing pauses (backup.md 6)."""

from datetime import timedelta

import pytest

from kube.resources import BACKUPS, COMPACT_BACKUPS, JOBS, PODS
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

SPAN = {"startTs": "2026-01-01T00:00:00Z", "endTs": "2026-01-02T00:00:00Z"}


def state(world: BackupsWorld) -> str:
    """The state of the only CompactBackup."""
    return str(world.status().get("state") or "")


def retries(world: BackupsWorld) -> list[int]:
    return [each["retryNum"] for each in world.status().get("backoffRetryStatus") or ()]


@pytest.mark.rule("backup-6")
def test_a_compaction_gets_its_job(world: BackupsWorld) -> None:
    world.add(**SPAN)
    assert (["demo"], "Prepare") == (world.jobs(), state(world))
    assert 6 == world.job("demo")["spec"]["backoffLimit"]
    assert ("SuccessfulCreate", "create job lab/demo for cluster demo CompactBackup successful") in world.events()


@pytest.mark.rule("backup-6")
def test_the_cluster_is_looked_for_in_its_own_namespace_and_waited_for(world: BackupsWorld) -> None:
    """v1.6 never finds one without a namespace."""
    world.add(br={"cluster": "other"}, **SPAN)
    assert "RetryFailed" == state(world)
    assert world.status()["message"].startswith("failed to fetch tidbcluster lab/other: there is none;")
    assert [] == retries(world)
    world.add_cluster("other")
    world.run(15)
    assert ("Prepare", ["demo"]) == (state(world), world.jobs())
    assert "message" not in world.status()


@pytest.mark.rule("backup-6")
def test_a_log_that_is_being_removed_is_not_compacted(world: BackupsWorld) -> None:
    """v1.6 lets tikv-ctl write while the files are being deleted."""
    log = tree("Backup", by_br(backupMode="log"), name="log", namespace=NAMESPACE, finalizers=["a/b"])
    world.admin.create(BACKUPS, log, NAMESPACE)
    cleaning = {"backupPath": "s3://lab/full", "conditions": [{"type": "Clean", "status": "False"}]}
    world.admin.patch(BACKUPS, "log", NAMESPACE, {"status": cleaning})
    world.admin.delete(BACKUPS, "log", NAMESPACE)
    world.add(**SPAN)
    assert ("RetryFailed", []) == (state(world), [each for each in world.jobs() if each == "demo"])
    assert "FilesBeingRemoved: Backup lab/log is being deleted" in world.status()["message"]


def add_log(world: BackupsWorld, phase: str = "Running", **moments: str) -> None:
    """A log backup where the CompactBackup reads."""
    world.admin.create(BACKUPS, tree("Backup", by_br(backupMode="log"), name="log", namespace=NAMESPACE), NAMESPACE)
    status = {"backupPath": "s3://lab/full", "phase": phase, **moments}
    world.admin.patch(BACKUPS, "log", NAMESPACE, {"status": status})


@pytest.mark.rule("backup-6")
def test_the_job_waits_until_the_log_has_the_span(world: BackupsWorld) -> None:
    add_log(world, commitTs="2026-01-01T00:00:00Z", logCheckpointTs="2026-01-01T12:00:00Z")
    world.add(**SPAN)
    world.run(10)
    assert ("Scheduled", []) == (state(world), world.jobs())
    assert "waiting for the log of Backup lab/log to reach spec.endTs 2026-01-02T00:00:00Z" in world.status()["message"]
    world.admin.patch(BACKUPS, "log", NAMESPACE, {"status": {"logCheckpointTs": "2026-01-02T00:00:00Z"}})
    world.run(15)
    assert ("Prepare", ["demo"]) == (state(world), world.jobs())


@pytest.mark.rule("backup-6")
def test_a_span_that_the_log_never_had_has_failed_without_a_job(world: BackupsWorld) -> None:
    add_log(world, commitTs="2026-02-01T00:00:00Z", logCheckpointTs="2026-02-02T00:00:00Z")
    world.add(**SPAN)
    assert ("Failed", []) == (state(world), world.jobs())
    assert "is before the log of Backup lab/log begins, at 2026-02-01T00:00:00Z" in world.status()["message"]


@pytest.mark.rule("backup-6")
def test_an_impossible_compaction_fails_and_names_the_field(world: BackupsWorld) -> None:
    world.add(startTs="2026-01-02T00:00:00Z", endTs="2026-01-01T00:00:00Z")
    said = 'spec.endTs: "2026-01-01T00:00:00Z": must not be before spec.startTs, 2026-01-02T00:00:00Z'
    assert ("Failed", said) == (state(world), world.status()["message"])
    assert [] == world.jobs()


@pytest.mark.rule("backup-6")
def test_the_pods_results_stay(world: BackupsWorld) -> None:
    world.add(**SPAN)
    world.write(state="Running", progress="[READ_META(1/2),COMPACT_WORK(0/0)]", endTs="7")
    before = world.backup()
    world.run(60)
    assert before == world.backup()
    world.write(state="Complete")
    world.end("demo", "Complete", "CompletionsReached")
    assert "Complete" == state(world)


@pytest.mark.rule("backup-6")
def test_a_job_that_has_failed_is_the_end(world: BackupsWorld) -> None:
    world.add(**SPAN)
    failure = {"retryNum": 0, "detectFailedAt": "2026-01-01T00:00:00Z", "retryReason": "no such file"}
    world.write(state="RetryFailed", backoffRetryStatus=[failure])
    world.end("demo")
    said = "Job demo has failed: BackoffLimitExceeded; no such file"
    assert ("Failed", said) == (state(world), world.status()["message"])
    assert ("AlreadyFailed", said) in world.events()


@pytest.mark.rule("backup-6")
def test_a_failed_creation_is_retried_with_growing_pauses(world: BackupsWorld) -> None:
    world.add(s3=S3 | {"secretName": "none"}, maxRetryTimes=3, **SPAN)
    said = "GetS3SecretFailed: Secret none does not exist; create it with the credentials"
    assert ("RetryFailed", said) == (state(world), world.status()["message"])
    world.run(5)
    assert [0, 1] == retries(world), "the first two at once"
    world.run(12)
    assert [0, 1] == retries(world)
    world.run(12)
    assert [0, 1, 2] == retries(world)
    world.run(200)
    assert [0, 1, 2, 3, 4] == retries(world)
    assert ("Failed", f"tried again 3 times: {said}") == (state(world), world.status()["message"])
    before = world.backup()
    world.run(600)
    assert before == world.backup()


@pytest.mark.rule("F44")
def test_a_clock_that_is_set_back_delays_no_retry(world: BackupsWorld) -> None:
    world.add(s3=S3 | {"secretName": "none"}, maxRetryTimes=3, **SPAN)
    world.run(5)
    world.clock.jump(timedelta(days=-365))
    world.run(200)
    assert ([0, 1, 2, 3, 4], "Failed") == (retries(world), state(world))


@pytest.mark.rule("backup-6")
def test_the_secret_that_was_missing_is_found(world: BackupsWorld) -> None:
    world.add(s3=S3 | {"secretName": "none"}, **SPAN)
    world.add_secret("none", access_key="AK", secret_key="SK")
    world.run(60)
    assert ("Prepare", ["demo"]) == (state(world), world.jobs())


@pytest.mark.rule("backup-6")
def test_a_deleted_job_is_recreated(world: BackupsWorld) -> None:
    world.add(**SPAN)
    world.write(state="Running")
    world.admin.delete(JOBS, "demo", NAMESPACE, propagation="Background")
    world.run(5)
    assert ["demo"] == world.jobs()


@pytest.mark.rule("backup-6")
def test_a_job_of_another_is_left_alone_and_named(world: BackupsWorld) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
    world.admin.create(JOBS, {"metadata": {"name": "demo"}, "spec": {"template": template}}, NAMESPACE)
    world.add(**SPAN)
    said = (
        "Job lab/demo is not this CompactBackup's: it is without a controller; delete it, or rename the CompactBackup"
    )
    assert ("RetryFailed", said) == (state(world), world.status()["message"])
    assert "ownerReferences" not in world.job("demo")["metadata"]


@pytest.mark.rule("backup-6")
def test_a_job_of_another_is_not_waited_for_without_end(world: BackupsWorld) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
    foreign = {"metadata": {"name": "demo"}, "spec": {"template": {"spec": pod}}}
    world.admin.create(JOBS, foreign, NAMESPACE)
    world.add(maxRetryTimes=2, **SPAN)
    world.run(3600, step=60.0)
    assert ([0, 1, 2, 3], "Failed") == (retries(world), state(world))


@pytest.mark.rule("backup-6")
def test_no_second_pod_starts_while_the_pod_of_a_deleted_job_runs(world: BackupsWorld) -> None:
    world.add(**SPAN)
    (pod,) = world.admin.list_page(PODS, NAMESPACE).items
    running = {"status": {"phase": "Running"}}
    world.admin.patch(PODS, pod.metadata.name, NAMESPACE, running, subresource="status")
    world.admin.delete(JOBS, "demo", NAMESPACE, propagation="Orphan")
    world.run(60)
    assert ([], 1) == (world.jobs(), world.pods())
    ended = {"status": {"phase": "Failed"}}
    world.admin.patch(PODS, pod.metadata.name, NAMESPACE, ended, subresource="status")
    world.run(60)
    assert ["demo"] == world.jobs()


@pytest.mark.parametrize("at", range(1, 6))
def test_a_new_process_continues_after_a_crash_at_any_point(world: BackupsWorld, at: int) -> None:
    world.operator.caches[COMPACT_BACKUPS].blind = True
    world.add(**SPAN)
    world.restart()
    for _ in range(at):
        world.operator.step()
        world.world.settle()
    world.restart()
    world.run(20)
    assert (["demo"], "Prepare") == (world.jobs(), state(world))


def test_a_cache_that_does_not_show_the_job_makes_no_second_one(world: BackupsWorld) -> None:
    world.operator.caches[JOBS].blind = True
    world.add(**SPAN)
    uid = world.job("demo")["metadata"]["uid"]
    world.restart()
    world.operator.caches[JOBS].blind = True
    world.run(30)
    assert (uid, "Prepare") == (world.job("demo")["metadata"]["uid"], state(world))


def test_reports_why_its_pod_cannot_start(world: BackupsWorld) -> None:
    world.world.faults.creation_refused("pods")
    world.add(**SPAN)
    world.run(60)
    assert ("Prepare", True) == (state(world), "exceeded quota: sandbox" in world.status()["message"])
    world.world.faults.heal()
    world.run(400)
    assert ("Prepare", True) == (state(world), "Unschedulable" in world.status()["message"])
