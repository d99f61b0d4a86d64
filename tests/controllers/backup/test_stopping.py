"""A log backup that is deleted is stopped, and only then its files go (backup.md 3.9)."""

from collections.abc import Iterator
from typing import Any

import pytest

from kube.resources import BACKUPS, NAMESPACES, TIDB_CLUSTERS
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE
from tests.controllers.backup.log_backups_world import PATH, LogBackupsWorld


@pytest.fixture
def logs() -> Iterator[LogBackupsWorld]:
    """A running log backup whose files are removed with it."""
    world = LogBackupsWorld(cleanPolicy="Delete")
    world.begin()
    try:
        yield world
    finally:
        world.stop()


def policy(logs: LogBackupsWorld, policy: str) -> None:
    logs.change(cleanPolicy=policy)


def stop_ends(logs: LogBackupsWorld) -> None:
    """The pod of `stop-demo` does its work."""
    logs.task.stop()
    logs.end("stop-demo", "Complete", "CompletionsReached")
    logs.run(40)


@pytest.mark.rule("backup-3.9")
def test_reports_why_the_stopping_pod_cannot_start(logs: LogBackupsWorld) -> None:
    logs.delete()
    logs.run(60)
    assert ("True", "PodCannotStart", logs.kept_from_starting("stop-demo")) == logs.condition("Scheduled")
    assert ("Scheduled", "log-stop") == (logs.phase(), _scheduled(logs)["command"])


@pytest.mark.rule("backup-3.9")
def test_the_task_is_stopped_then_the_files_and_the_backup_are_removed(logs: LogBackupsWorld) -> None:
    logs.delete()
    assert ["backup-demo-log-start", "stop-demo"] == sorted(logs.jobs())
    arguments = logs.job("stop-demo")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert ["--mode=log", "--subcommand=log-stop"] == arguments[-2:]
    assert ("Scheduled", "log-stop") == (logs.phase(), _scheduled(logs)["command"])
    logs.run(300)
    assert "clean-demo" not in logs.jobs()
    stop_ends(logs)
    assert "clean-demo" in logs.jobs()
    assert ("False", "Clean") == (logs.condition("Clean")[0], logs.phase())
    logs.say("Clean")
    logs.run(5)
    assert not logs.exists()


def _scheduled(logs: LogBackupsWorld) -> Any:
    return next(each for each in logs.status()["conditions"] if each["type"] == "Scheduled")


@pytest.mark.parametrize("kept", ["Retain", "OnFailure"])
@pytest.mark.rule("backup-3.9")
def test_keeping_the_files_still_stops_the_task(logs: LogBackupsWorld, kept: str) -> None:
    policy(logs, kept)
    logs.delete()
    assert "stop-demo" in logs.jobs()
    assert logs.exists()
    stop_ends(logs)
    assert not logs.exists()


@pytest.mark.rule("backup-3.9")
def test_a_stopped_task_is_not_stopped_again(logs: LogBackupsWorld) -> None:
    logs.change(logStop=True)
    logs.carry_out("log-stop")
    logs.delete()
    assert "stop-demo" not in logs.jobs()
    assert "clean-demo" in logs.jobs()


@pytest.mark.rule("backup-3.9")
def test_a_task_unknown_to_the_cluster_is_not_stopped(logs: LogBackupsWorld) -> None:
    logs.task.stop()
    logs.delete()
    assert "stop-demo" not in logs.jobs()
    assert "clean-demo" in logs.jobs()


@pytest.mark.rule("backup-3.9")
def test_a_task_whose_start_was_killed_is_stopped_if_the_cluster_knows_it() -> None:
    """v1.6 reads only the status, and the task continues forever."""
    world = LogBackupsWorld()
    try:
        world.do("log-start", "Prepare", "Running", backupPath="s3://lab/log")
        world.task.begin(1)
        world.delete()
        world.run(10)
        assert ["stop-demo"] == world.jobs()
    finally:
        world.stop()


@pytest.mark.rule("backup-3.9")
def test_the_task_of_another_of_the_same_name_is_not_stopped() -> None:
    """BR names a task after its Backup, without the namespace: of two Backups the first one owns the task."""
    world = LogBackupsWorld()
    try:
        world.admin.create(NAMESPACES, {"metadata": {"name": "far"}})
        spec = by_br(
            backupMode="log", br={"cluster": "basic", "clusterNamespace": NAMESPACE}, s3=S3 | {"prefix": "far"}
        )
        world.admin.create(BACKUPS, tree("Backup", spec, namespace="far"), "far")
        world.admin.patch(BACKUPS, "demo", "far", {"status": {"phase": "Running", "commitTs": "1"}})
        world.task.begin(1)
        world.do("log-start", "Prepare", "Running", "Failed", backupPath=PATH)
        world.delete()
        world.run(10)
        assert "stop-demo" not in world.jobs()
        assert world.task.exists
    finally:
        world.stop()


@pytest.mark.rule("backup-3.9")
def test_a_failed_stop_keeps_the_files_and_is_tried_again(logs: LogBackupsWorld) -> None:
    """v1.6 removes files that are still being written."""
    logs.delete()
    first = logs.job("stop-demo")["metadata"]["uid"]
    logs.end("stop-demo")
    _, reason, message = logs.condition("RetryFailed")
    assert ("StopLogBackupJobFailed", True) == (reason, "br log stop --task-name=demo" in message)
    logs.run(280)
    assert first == logs.job("stop-demo")["metadata"]["uid"]
    logs.run(60)
    assert first != logs.job("stop-demo")["metadata"]["uid"]
    assert "clean-demo" not in logs.jobs()


@pytest.mark.rule("backup-3.9")
def test_a_failed_stop_of_a_missing_task_is_no_failure(logs: LogBackupsWorld) -> None:
    logs.delete()
    logs.task.stop()
    logs.end("stop-demo")
    logs.run(5)
    assert "clean-demo" in logs.jobs()


@pytest.mark.rule("backup-3.9")
def test_without_the_cluster_nothing_needs_to_be_stopped(logs: LogBackupsWorld) -> None:
    """v1.6 can never build the Job."""
    logs.admin.delete(TIDB_CLUSTERS, "basic", NAMESPACE)
    logs.delete()
    assert "clean-demo" in logs.jobs()


@pytest.mark.rule("backup-3.9")
def test_nothing_hangs_in_a_terminating_namespace(logs: LogBackupsWorld) -> None:
    logs.delete_namespace()
    logs.run(30)
    assert not logs.exists()


@pytest.fixture
def elsewhere() -> Iterator[LogBackupsWorld]:
    """A log backup in the namespace `far`, which runs in the cluster of the namespace `lab`."""
    world = LogBackupsWorld()
    world.delete()
    world.run(30)
    world.admin.create(NAMESPACES, {"metadata": {"name": "far"}})
    world.consent("far")
    br = {"cluster": "basic", "clusterNamespace": NAMESPACE}
    spec = by_br(backupMode="log", br=br, s3=S3 | {"prefix": "far"})
    body = tree("Backup", spec, name="demo", namespace="far", finalizers=["tidb.pingcap.com/backup-protection"])
    world.admin.create(BACKUPS, body, "far")
    world.task.begin(1)
    said = {"phase": "Running", "commitTs": "1", "backupPath": "s3://lab/far"}
    world.admin.patch(BACKUPS, "demo", "far", {"status": said})
    world.run()
    try:
        yield world
    finally:
        world.stop()


def is_there(world: LogBackupsWorld) -> bool:
    return world.admin.find(BACKUPS, "demo", "far") is not None


def test_the_operator_ends_the_task_of_a_log_backup_in_a_terminating_namespace(elsewhere: LogBackupsWorld) -> None:
    """The namespace takes no new Job; v1.6 leaves the task forever, and no other log backup can begin."""
    elsewhere.admin.delete(NAMESPACES, "far")
    elsewhere.run(30)
    assert (False, False) == (is_there(elsewhere), elsewhere.task.exists)
    assert {} == {key: entry for key, entry in elsewhere.pd.etcd.keys.items() if b"br-stream" in key}
    message = (
        "log backup far/demo, whose namespace is being deleted, was ended: its task demo was removed from PD; its "
        "files stay in s3://lab/far"
    )
    assert ("LogBackupEnded", message) in elsewhere.events()


def test_a_silent_pd_delays_a_namespace_for_five_minutes_and_an_event_names_what_remains(
    elsewhere: LogBackupsWorld,
) -> None:
    elsewhere.pd.answers = False
    elsewhere.admin.delete(NAMESPACES, "far")
    elsewhere.run(60)
    conditions = elsewhere.admin.get(BACKUPS, "demo", "far").decode()["status"]["conditions"]
    assert ["LogTaskRemains"] == [each["reason"] for each in conditions if each["type"] == "Waiting"]
    elsewhere.run(300)
    assert (False, True) == (is_there(elsewhere), elsewhere.task.exists)
    (told,) = [message for reason, message in elsewhere.events() if reason == "LogTaskRemains"]
    assert told.endswith("when PD answers, run `br log stop --task-name=demo`")


def test_a_pd_that_answers_again_ends_it_after_all(elsewhere: LogBackupsWorld) -> None:
    elsewhere.pd.answers = False
    elsewhere.admin.delete(NAMESPACES, "far")
    elsewhere.run(60)
    elsewhere.pd.answers = True
    elsewhere.run(30)
    assert (False, False) == (is_there(elsewhere), elsewhere.task.exists)


def test_a_terminating_namespace_ends_no_task_of_another_backup(elsewhere: LogBackupsWorld) -> None:
    body = tree("Backup", by_br(backupMode="log"), name="demo", namespace=NAMESPACE)
    elsewhere.admin.create(BACKUPS, body, NAMESPACE)
    elsewhere.admin.patch(BACKUPS, "demo", NAMESPACE, {"status": {"phase": "Running", "commitTs": "1"}})
    elsewhere.admin.patch(BACKUPS, "demo", "far", {"status": {"phase": "Failed", "commitTs": None}})
    elsewhere.admin.delete(NAMESPACES, "far")
    elsewhere.run(30)
    assert (False, True) == (is_there(elsewhere), elsewhere.task.exists)


def test_the_task_of_a_cluster_that_does_not_consent_is_not_ended(elsewhere: LogBackupsWorld) -> None:
    """Else any user could end the log backup of another namespace by a Backup of its name."""
    elsewhere.consent()
    elsewhere.admin.delete(BACKUPS, "demo", "far")
    elsewhere.run(60)
    waiting = elsewhere.admin.get(BACKUPS, "demo", "far").decode()["status"]["conditions"]
    assert ["ReferenceNotAllowed"] == [each["reason"] for each in waiting if each["type"] == "Waiting"]
    assert elsewhere.task.exists
    elsewhere.admin.delete(NAMESPACES, "far")
    elsewhere.run(30)
    assert (False, True) == (is_there(elsewhere), elsewhere.task.exists)


def test_pd_of_a_cluster_without_consent_is_not_asked(elsewhere: LogBackupsWorld) -> None:
    elsewhere.consent()
    elsewhere.task.stop()
    elsewhere.admin.delete(BACKUPS, "demo", "far")
    elsewhere.run(60)
    assert is_there(elsewhere)


@pytest.mark.parametrize("command", ["log-pause", "log-truncate"])
@pytest.mark.rule("backup-3.9")
def test_jobs_that_run_are_ended_first(logs: LogBackupsWorld, command: str) -> None:
    """v1.6 forgets those that pause and resume."""
    logs.change(
        **({"logSubcommand": command} if command == "log-pause" else {"logTruncateUntil": "2099-01-01T00:00:00Z"})
    )
    logs.admin.delete(BACKUPS, "demo", NAMESPACE)
    for _ in range(60):
        logs.operator.step()
        logs.world.advance(0.5)
        assert not {f"backup-demo-{command}", "stop-demo"} <= {*logs.jobs()}
    assert "stop-demo" in logs.jobs()


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, 10))
def test_a_new_process_continues_after_a_crash_at_any_point(logs: LogBackupsWorld, at: int) -> None:
    logs.restart()
    logs.admin.delete(BACKUPS, "demo", NAMESPACE)
    for _ in range(at):
        logs.operator.step()
        logs.world.settle()
    logs.restart()
    logs.run(20)
    assert ["backup-demo-log-start", "stop-demo"] == sorted(logs.jobs())
    stop_ends(logs)
    assert "clean-demo" in logs.jobs()
