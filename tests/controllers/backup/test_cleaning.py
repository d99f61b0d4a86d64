"""A deleted Backup removes its files on request, and never files of other Backups (backup.md 3.9)."""

from datetime import timedelta
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import BACKUPS, RESTORES, SECRETS
from ports.transport import Request, Response, Transport
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

PATH = "s3://lab/full"


def complete(backups: BackupsWorld, name: str = "demo", **spec: Any) -> None:
    """A Backup whose files are there."""
    backups.add(name, **{"cleanPolicy": "Delete", **spec})
    backups.say("Complete", name, backupPath=PATH)
    backups.end(f"backup-{name}", "Complete", "CompletionsReached")


def test_the_files_go_first_then_the_backup_with_its_jobs(backups: BackupsWorld) -> None:
    complete(backups)
    backups.delete()
    assert ["backup-demo", "clean-demo"] == sorted(backups.jobs())
    assert ("False", "Clean") == (backups.condition("Clean")[0], backups.phase())
    assert 6 == backups.job("clean-demo")["spec"]["backoffLimit"]

    backups.run(120)
    assert backups.exists()
    backups.say("Clean")
    assert not backups.exists()
    backups.run(5)
    assert [] == backups.jobs()


def test_a_backup_without_files_is_removed_at_once(backups: BackupsWorld) -> None:
    backups.set_ready(is_ready=False)
    backups.add(cleanPolicy="Delete")
    backups.set_ready(is_ready=True)
    backups.run(15)
    backups.end(kind="Complete", reason="CompletionsReached")
    backups.delete()
    assert not backups.exists()


@pytest.mark.parametrize(("kind", "cleaned"), [("Complete", False), ("Failed", True)])
def test_on_failure_only_the_files_of_a_failure_go(backups: BackupsWorld, kind: str, *, cleaned: bool) -> None:
    backups.add(cleanPolicy="OnFailure")
    backups.say(kind, backupPath=PATH)
    backups.end(kind="Complete", reason="CompletionsReached")
    backups.delete()
    assert cleaned == backups.exists() == ("clean-demo" in backups.jobs())


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_files_are_removed_after_the_policy_changes_to_delete(backups: BackupsWorld, kind: str) -> None:
    """In v1.6 they stay: it does not check a Backup that has ended."""
    backups.add()
    backups.say(kind, backupPath=PATH)
    backups.end(kind=kind, reason="CompletionsReached")
    backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"cleanPolicy": "Delete"}})
    backups.run()
    backups.delete()
    assert (True, True) == (backups.exists(), "clean-demo" in backups.jobs())


def test_files_are_kept_after_the_policy_changes_to_retain(backups: BackupsWorld) -> None:
    """v1.6 never removes the finalizer then."""
    complete(backups)
    backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"cleanPolicy": "Retain"}})
    backups.delete()
    assert not backups.exists()
    assert "clean-demo" not in backups.jobs()


def test_a_backup_that_still_runs_is_ended_before_its_files_are_touched(backups: BackupsWorld) -> None:
    backups.add(cleanPolicy="Delete")
    backups.say("Running", backupPath=PATH)
    backups.admin.delete(BACKUPS, "demo", NAMESPACE)
    for _ in range(40):
        backups.operator.step()
        backups.world.advance(0.5)
        running = "backup-demo" in backups.jobs()
        assert not (running and "clean-demo" in backups.jobs())
    backups.run(10)
    assert ["clean-demo"] == backups.jobs()


@pytest.mark.parametrize("prefix", ["full", "full/daily", ""])
def test_files_shared_with_another_backup_are_kept(backups: BackupsWorld, prefix: str) -> None:
    """v1.6 removes whatever is below the path."""
    complete(backups)
    backups.add("other", s3=S3 | {"prefix": prefix})
    backups.delete()
    message = f"{PATH} is kept, since Backup lab/other needs it; the files are removed when that one is gone"
    assert ("True", "FilesInUse", message) == backups.condition("CleanFailed")
    backups.run(300)
    assert "clean-demo" not in backups.jobs()

    backups.delete("other")
    backups.run(40)
    assert "clean-demo" in backups.jobs()


def test_names_that_begin_alike_share_nothing(backups: BackupsWorld) -> None:
    complete(backups)
    backups.add("other", s3=S3 | {"prefix": "full-2"})
    backups.add("elsewhere", s3=S3 | {"bucket": "other"})
    backups.delete()
    assert "clean-demo" in backups.jobs()


@pytest.mark.parametrize(("status", "kept"), [({"backupPath": f"{PATH}/log"}, True), ({}, False)])
def test_a_started_backup_needs_its_files_although_its_spec_became_invalid(
    backups: BackupsWorld, status: Json, *, kept: bool
) -> None:
    complete(backups)
    backups.add("log", backupMode="log", s3=S3 | {"prefix": "full/log"}, backoffRetryPolicy={"minRetryDuration": "5 m"})
    backups.write("log", **status)
    assert "Invalid" == backups.phase("log")
    backups.delete()
    assert kept is not ("clean-demo" in backups.jobs())


def test_two_that_share_files_and_are_both_deleted_go_both(backups: BackupsWorld) -> None:
    complete(backups)
    complete(backups, "other")
    for name in ("demo", "other"):
        backups.admin.delete(BACKUPS, name, NAMESPACE)
    backups.run(40)
    for name in ("demo", "other"):
        assert f"clean-{name}" in backups.jobs()
        backups.say("Clean", name)
        assert not backups.exists(name)


def test_files_that_a_restore_reads_are_kept_until_it_ends(backups: BackupsWorld) -> None:
    complete(backups)
    body = tree("Restore", by_br(), name="back", namespace=NAMESPACE)
    backups.admin.create(RESTORES, body, NAMESPACE)
    backups.delete()
    _, reason, message = backups.condition("CleanFailed")
    assert ("FilesInUse", True) == (reason, "Restore lab/back needs it" in message)

    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    backups.admin.patch(RESTORES, "back", NAMESPACE, {"status": done})
    backups.run(40)
    assert "clean-demo" in backups.jobs()


@pytest.mark.parametrize(("begun", "kept"), [("Running", True), ("RetryFailed", False)])
def test_a_restore_that_has_begun_reads_on_though_its_spec_is_not_valid_by_now(
    backups: BackupsWorld, begun: str, *, kept: bool
) -> None:
    complete(backups)
    status = {"conditions": [{"type": each, "status": "True"} for each in (begun, "Invalid")]}
    body = tree("Restore", by_br() | {"backupType": "other"}, name="back", namespace=NAMESPACE, status=status)
    backups.admin.create(RESTORES, body, NAMESPACE)
    backups.delete()
    assert kept is not ("clean-demo" in backups.jobs())


def restore_after(backups: BackupsWorld, method: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a Restore of the files, and label the Backup, right after the operator's first such write."""
    carry, done = backups.faults.carry, list[Request]()

    def meddling(transport: Transport, request: Request) -> Response:
        answer = carry(transport, request)
        if request.method == method and part in request.url and not done:
            done.append(request)
            backups.admin.create(RESTORES, tree("Restore", by_br(), name="back", namespace=NAMESPACE), NAMESPACE)
            backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"metadata": {"labels": {"a": "b"}}})
        return answer

    monkeypatch.setattr(backups.faults, "carry", meddling)


def test_a_restore_created_during_the_first_check_is_seen_by_the_second(
    backups: BackupsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In either order, no file that is being restored is removed, and the two never wait for each other forever."""
    complete(backups)
    restore_after(backups, "PATCH", "backups/demo", monkeypatch)
    backups.delete()
    assert "FilesInUse" == backups.condition("CleanFailed")[1]
    backups.run(40)
    assert ["backup-demo", "clean-demo"] == sorted(backups.jobs())


def test_a_restore_created_while_the_cleaning_job_runs_waits(
    backups: BackupsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(backups)
    restore_after(backups, "POST", "/jobs", monkeypatch)
    backups.delete()
    backups.run(5)
    backups.resource = RESTORES
    assert (True, "FilesBeingRemoved") == (
        "clean-demo" in backups.jobs(),
        backups.condition("RetryFailed", "back")[1],
    )


def test_reports_why_the_cleaning_pod_cannot_start(backups: BackupsWorld) -> None:
    complete(backups)
    backups.delete()
    assert ("False", "", "") == backups.condition("Clean")
    backups.run(60)
    assert ("False", "PodCannotStart", backups.kept_from_starting("clean-demo")) == backups.condition("Clean")
    assert "Clean" == backups.phase()


def test_a_failed_cleaning_is_reported_and_retried(backups: BackupsWorld) -> None:
    """In v1.6 the finalizer stays forever."""
    complete(backups)
    backups.delete()
    first = backups.job("clean-demo")["metadata"]["uid"]
    backups.end("clean-demo")
    message = "Job lab/clean-demo has failed: why; look at its pods' logs"
    assert ("True", "CleanBackupDataFailed", message) == backups.condition("CleanFailed")
    backups.run(280)
    assert first == backups.job("clean-demo")["metadata"]["uid"]
    backups.run(60)
    assert first != backups.job("clean-demo")["metadata"]["uid"]
    assert ("False", "Clean") == (backups.condition("Clean")[0], backups.phase())
    backups.say("Clean")
    assert not backups.exists()


@pytest.mark.parametrize("seconds", [-86400.0, 86400.0])
@pytest.mark.rule("F44")
def test_a_clock_that_jumps_puts_no_cleaning_off(backups: BackupsWorld, seconds: float) -> None:
    complete(backups)
    backups.delete()
    first = backups.job("clean-demo")["metadata"]["uid"]
    backups.end("clean-demo")
    backups.clock.jump(timedelta(seconds=seconds))
    backups.run(340)
    assert first != backups.job("clean-demo")["metadata"]["uid"]


def test_the_pods_failure_message_stays(backups: BackupsWorld) -> None:
    complete(backups)
    backups.delete()
    backups.say("CleanFailed")
    before = backups.condition("CleanFailed")
    backups.end("clean-demo")
    assert before == backups.condition("CleanFailed")


def test_a_cleaning_that_ended_silently_is_repeated(backups: BackupsWorld) -> None:
    complete(backups)
    backups.delete()
    first = backups.job("clean-demo")["metadata"]["uid"]
    backups.end("clean-demo", "Complete", "CompletionsReached")
    backups.run(60)
    assert backups.exists()
    backups.run(260)
    assert first != backups.job("clean-demo")["metadata"]["uid"]


def test_in_a_terminating_namespace_the_files_stay_and_nothing_hangs(backups: BackupsWorld) -> None:
    """v1.6 waits for a Job that cannot be created."""
    complete(backups)
    backups.delete_namespace()
    backups.run(30)
    assert not backups.exists()


def test_a_missing_secret_is_named_and_the_backup_stays(backups: BackupsWorld) -> None:
    complete(backups)
    backups.admin.delete(SECRETS, "keys", NAMESPACE)
    backups.delete()
    assert ("True", "GetS3SecretFailed", "Secret keys does not exist; create it with the credentials") == (
        backups.condition("RetryFailed")
    )
    assert backups.exists()


@pytest.mark.rule("R06")
@pytest.mark.parametrize("at", range(1, 8))
def test_a_new_process_continues_after_a_crash_at_any_write(backups: BackupsWorld, at: int) -> None:
    complete(backups)
    backups.restart()
    backups.admin.delete(BACKUPS, "demo", NAMESPACE)
    for _ in range(at):
        backups.operator.step()
        backups.world.settle()
    backups.restart()
    backups.run(20)
    assert (["backup-demo", "clean-demo"], "Clean") == (sorted(backups.jobs()), backups.phase())
