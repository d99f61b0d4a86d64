"""The output of `kubectl get bk,rt,bks,cpbk -o wide`: the columns of v1.6 and ours, from objects in use."""

import pytest

from kube.objects import Json
from kube.resources import BACKUP_SCHEDULES, BACKUPS, COMPACT_BACKUPS, RESTORES, Resource
from tests.contract.worlds import Side, eventually

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BR: Json = {"br": {"cluster": "a"}, "s3": {"provider": "aws", "bucket": "b"}}
PROGRESSES = [
    {"step": "Full Backup", "progress": 100, "lastTransitionTime": "2026-01-01T00:00:00Z"},
    {"step": "Checksum", "progress": 40.5, "lastTransitionTime": "2026-01-01T00:00:00Z"},
]


def condition(kind: str, message: str, *, holds: bool = True) -> Json:
    return {"type": kind, "status": str(holds), "reason": "X", "message": message}


def shown(world: Side, namespace: str, resource: Resource, spec: Json, status: Json) -> Json:
    """The cells of an object by the names of their columns."""
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "a"}, "spec": spec}
    eventually(lambda: 200 == world.send("GET", resource.path(namespace)).status)
    world.client.create(resource, body | {"status": status}, namespace)
    table = world.send("GET", resource.path(namespace), accept=TABLE).tree
    names = [each["name"] for each in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][0]["cells"], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("resource", [BACKUPS, RESTORES], ids=lambda resource: resource.kind)
def test_a_backup_and_a_restore_show_how_far_they_are(world: Side, namespace: str, resource: Resource) -> None:
    cells = shown(world, namespace, resource, BR, {"phase": "Running", "progresses": PROGRESSES})
    assert ("Running", "Checksum", 40.5) == (cells["Status"], cells["Step"], cells["Percent"])
    assert [None, None, None] == [cells[name] for name in ("Invalid", "LastRetry", "Failure")]


@pytest.mark.slow
@pytest.mark.parametrize("resource", [BACKUPS, RESTORES], ids=lambda resource: resource.kind)
def test_they_show_why_not(world: Side, namespace: str, resource: Resource) -> None:
    conditions = [condition("RetryFailed", "evicted"), condition("Failed", "no space left")]
    cells = shown(world, namespace, resource, BR, {"phase": "Failed", "conditions": conditions})
    assert (None, "evicted", "no space left") == (cells["Invalid"], cells["LastRetry"], cells["Failure"])
    assert (None, None) == (cells["Step"], cells["Percent"])


@pytest.mark.slow
def test_a_backup_shows_size_and_duration(world: Side, namespace: str) -> None:
    status = {"phase": "Complete", "backupSizeReadable": "8.2 MB", "timeTaken": "1h2m3s", "backupPath": "s3://b"}
    cells = shown(world, namespace, BACKUPS, BR, status)
    assert ("8.2 MB", "1h2m3s", "s3://b") == (cells["BackupSize"], cells["TimeTaken"], cells["BackupPath"])


@pytest.mark.slow
def test_a_schedule_shows_the_next_backup_and_the_last(world: Side, namespace: str) -> None:
    spec = {"schedule": "0 3 * * *", "backupTemplate": BR, "maxBackups": 7}
    conditions = [condition("Active", "the next is due"), condition("LastBackupComplete", "a: no space", holds=False)]
    cells = shown(world, namespace, BACKUP_SCHEDULES, spec, {"lastBackup": "a", "conditions": conditions})
    assert ("True", "False", "the next is due", "a: no space") == tuple(
        cells[name] for name in ("Active", "LastComplete", "Next", "Last")
    )


def test_a_compaction_shows_state_progress_and_message(world: Side, namespace: str) -> None:
    status = {"state": "RetryFailed", "progress": "[READ_META(1/2),COMPACT_WORK(0/9)]", "message": "aborted"}
    cells = shown(world, namespace, COMPACT_BACKUPS, BR, status)
    assert tuple(status.values()) == (cells["Status"], cells["Progress"], cells["Message"])
