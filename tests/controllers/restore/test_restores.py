"""A Restore gets one Job, reports its result, and prunes after a failure on request (backup.md 4.3, 4.4)."""

from collections.abc import Iterator

import pytest

from kube.resources import BACKUPS, JOBS, PERSISTENT_VOLUME_CLAIMS, RESTORES
from tests.apis.backups import ACCESS, S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld


@pytest.fixture
def restores() -> Iterator[BackupsWorld]:
    """Without nodes: Jobs have pods, which wait, until the test says how they end."""
    world = BackupsWorld(RESTORES)
    try:
        yield world
    finally:
        world.stop()


def test_a_restore_gets_its_job_and_is_not_touched_again(restores: BackupsWorld) -> None:
    restores.add()
    assert (["restore-demo"], "Scheduled") == (restores.jobs(), restores.phase())
    assert ("SuccessfulCreate", "create job lab/restore-demo for cluster demo Restore successful") in restores.events()
    restores.say("Running")
    before = restores.backup()
    restores.run(600)
    assert before == restores.backup()
    assert "finalizers" not in before["metadata"]


def test_a_restore_waits_for_pd_and_tikv_alone(restores: BackupsWorld) -> None:
    """v1.6 waits for nothing, and BR gives up on a cluster without TiKV."""
    restores.set_serving(stores=1)
    restores.add()
    restores.run(15)
    message = (
        "waiting for TidbCluster lab/basic, with which BR cannot work: "
        "2 of 3 TiKV stores are not Up (basic-tikv-1, basic-tikv-2); regions may lack a majority"
    )
    assert ("True", "ClusterNotServing", message) == restores.condition("Waiting")
    assert ([], "") == (restores.jobs(), restores.phase())
    restores.set_serving()
    restores.run(15)
    assert ("Scheduled", "False") == (restores.phase(), restores.condition("Waiting")[0])


def test_a_cluster_that_is_not_there_is_named_and_waited_for(restores: BackupsWorld) -> None:
    restores.add(br={"cluster": "other"})
    assert f"failed to fetch tidbcluster {NAMESPACE}/other" == restores.condition("RetryFailed")[1]
    assert [] == restores.jobs()


def test_an_invalid_restore_says_why_and_is_checked_again_after_a_correction(restores: BackupsWorld) -> None:
    restores.add(s3={"provider": "aws"})
    assert ("True", "InvalidSpec", "spec.s3.bucket: is required; name the bucket") == restores.condition("Invalid")
    restores.admin.patch(RESTORES, "demo", NAMESPACE, {"spec": {"s3": S3}})
    restores.run()
    assert ("Scheduled", "False") == (restores.phase(), restores.condition("Invalid")[0])


def test_unsupported_fields_are_reported_by_name(restores: BackupsWorld) -> None:
    restores.add(restoreMode="volume-snapshot")
    _, reason, message = restores.condition("Invalid")
    assert "InvalidSpec" == reason
    assert message.startswith('spec.restoreMode: "volume-snapshot": is not offered; restore a backup of mode snapshot')
    assert [] == restores.jobs()


def test_an_import_gets_its_claim(restores: BackupsWorld) -> None:
    restores.add_secret("password", password="PW")
    archive = {"provider": "aws", "path": "lab/a.tgz", "secretName": "keys"}
    restores.add(br=None, to=ACCESS, storageSize="1Gi", s3=archive)
    assert (["restore-demo"], "Scheduled") == (restores.jobs(), restores.phase())
    claims = restores.admin.list_page(PERSISTENT_VOLUME_CLAIMS, NAMESPACE).items
    assert [True] == [each.metadata.name.startswith("restore-pvc-") for each in claims]


def test_a_job_that_failed_without_a_word_is_the_end(restores: BackupsWorld) -> None:
    restores.add()
    restores.end("restore-demo")
    message = "Job restore-demo has failed: BackoffLimitExceeded"
    assert ("True", "AlreadyFailed", message) == restores.condition("Failed")
    before = restores.backup()
    restores.run(600)
    assert (before, ["restore-demo"]) == (restores.backup(), restores.jobs())


def test_the_last_pods_message_is_reported_when_its_job_has_failed(restores: BackupsWorld) -> None:
    restores.add(backoffLimit=1)
    said = {"type": "RetryFailed", "status": "True", "reason": "RestoreDataFromRemoteFailed", "message": "BR says no"}
    restores.write(phase="RetryFailed", conditions=[*restores.status()["conditions"], said])
    assert ("", "", "") == restores.condition("Failed")
    restores.end("restore-demo")
    message = "Job restore-demo has failed: BackoffLimitExceeded; BR says no"
    assert ("True", "AlreadyFailed", message) == restores.condition("Failed")


def test_a_job_that_is_deleted_before_it_ended_is_a_failure(restores: BackupsWorld) -> None:
    restores.add()
    restores.admin.delete(JOBS, "restore-demo", NAMESPACE, propagation="Background")
    restores.run(5)
    message = "Job restore-demo was deleted before it ended; create another Restore to try again"
    assert ("True", "JobDeleted", message) == restores.condition("Failed")


def test_files_that_are_being_removed_are_not_restored(restores: BackupsWorld) -> None:
    """v1.6 begins, and leaves half of a cluster behind."""
    body = tree("Backup", by_br(cleanPolicy="Delete"), name="old", namespace=NAMESPACE)
    body["metadata"]["finalizers"] = ["tidb.pingcap.com/backup-protection"]
    said = {"type": "Complete", "status": "True"}
    body["status"] = {"phase": "Complete", "backupPath": "s3://lab/full", "conditions": [said]}
    restores.admin.create(BACKUPS, body, NAMESPACE)
    restores.admin.delete(BACKUPS, "old", NAMESPACE)
    restores.run()
    assert ["clean-old"] == restores.jobs()

    restores.add()
    message = "Backup lab/old is being deleted with the files to restore; restore another one, and delete this Restore"
    assert ("True", "FilesBeingRemoved", message) == restores.condition("RetryFailed")
    restores.add("other", s3=S3 | {"prefix": "full-2"})
    restores.add_secret("password", password="PW")
    archive = {"provider": "aws", "path": "lab/a.tgz", "secretName": "keys"}
    restores.add("import", br=None, to=ACCESS, storageSize="1Gi", s3=archive)
    assert ["clean-old", "restore-import", "restore-other"] == sorted(restores.jobs())


def test_a_restore_that_completed_is_final_whatever_its_job_says(restores: BackupsWorld) -> None:
    restores.add(prune="afterFailed")
    restores.say("Complete")
    restores.end("restore-demo")
    assert ("Complete", ["restore-demo"]) == (restores.phase(), restores.jobs())


def test_a_failed_restores_remains_are_pruned(restores: BackupsWorld) -> None:
    restores.add(prune="afterFailed")
    restores.end("restore-demo")
    assert ["restore-demo", "restore-demo-prune"] == sorted(restores.jobs())
    assert ("True", "RestoreFailedPruneScheduled", "") == restores.condition("PruneScheduled")
    assert "--abort=true" in restores.job("restore-demo-prune")["spec"]["template"]["spec"]["containers"][0]["args"]
    restores.say("PruneRunning")
    restores.say("PruneComplete")
    before = restores.backup()
    restores.run(600)
    assert before == restores.backup()


@pytest.mark.rule("backup-4.3")
def test_a_volume_restore_of_v1_6_that_has_failed_is_not_pruned(restores: BackupsWorld) -> None:
    spec = by_br(restoreMode="volume-snapshot", prune="afterFailed")
    status = {"phase": "Failed", "conditions": [{"type": "Failed", "status": "True"}]}
    body = tree("Restore", spec, status=status, name="demo", namespace=NAMESPACE)
    before = restores.admin.create(RESTORES, body, NAMESPACE).decode()
    restores.run(60)
    assert (before, []) == (restores.backup(), restores.jobs())


def test_no_pruning_while_another_pod_may_restore(restores: BackupsWorld) -> None:
    """v1.6 prunes at the same time."""
    restores.add(prune="afterFailed", backoffLimit=2)
    restores.say("Failed")
    restores.run(120)
    assert ["restore-demo"] == restores.jobs()
    restores.end("restore-demo")
    restores.run(5)
    assert ["restore-demo", "restore-demo-prune"] == sorted(restores.jobs())


def test_reports_why_the_pruning_pod_cannot_start(restores: BackupsWorld) -> None:
    restores.add(prune="afterFailed")
    restores.end("restore-demo")
    restores.run(60)
    told = restores.kept_from_starting("restore-demo-prune")
    assert ("True", "PodCannotStart", told) == restores.condition("PruneScheduled")


def test_a_deleted_prune_job_is_recreated(restores: BackupsWorld) -> None:
    """v1.6 waits forever."""
    restores.add(prune="afterFailed")
    restores.end("restore-demo")
    restores.say("PruneRunning")
    restores.admin.delete(JOBS, "restore-demo-prune", NAMESPACE, propagation="Background")
    restores.run(30)
    assert ["restore-demo", "restore-demo-prune"] == sorted(restores.jobs())


def test_reports_a_prune_that_failed_silently(restores: BackupsWorld) -> None:
    restores.add(prune="afterFailed")
    restores.end("restore-demo")
    restores.end("restore-demo-prune")
    message = "Job restore-demo-prune has failed: BackoffLimitExceeded"
    assert ("True", "AlreadyFailed", message) == restores.condition("PruneFailed")
    before = restores.backup()
    restores.run(600)
    assert before == restores.backup()


@pytest.mark.parametrize("at", range(1, 7))
def test_a_new_process_continues_after_a_crash_at_any_point(restores: BackupsWorld, at: int) -> None:
    restores.add(prune="afterFailed")
    restores.restart()
    now = {"type": "Failed", "status": "True", "reason": "X", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = {"status": {"conditions": [now | {"type": "FailureTarget"}, now]}}
    restores.admin.patch(JOBS, "restore-demo", NAMESPACE, conditions, subresource="status")
    for _ in range(at):
        restores.operator.step()
        restores.world.settle()
    restores.restart()
    restores.run(10)
    assert (["restore-demo", "restore-demo-prune"], "PruneScheduled") == (sorted(restores.jobs()), restores.phase())
