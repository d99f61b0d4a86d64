"""A wait names the Secret that the Job would lack when the wait is over (backup.md 3.5, 4.4)."""

from typing import Any

import pytest

from kube.resources import BACKUPS, COMPACT_BACKUPS, RESTORES, Resource
from member.backups.naming import FINALIZER
from tests.apis.backups import S3, by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

_AT = 400_000_000_000_000_000
_LATER = 500_000_000_000_000_000
_TO_POINT = {"restoreMode": "pitr", "pitrRestoredTs": str(_LATER), "logRestoreStartTs": str(_AT)}
_MISSING = "then Secret none does not exist; create it with the credentials"


@pytest.mark.parametrize(
    ("resource", "spec"),
    [(BACKUPS, {}), (BACKUPS, {"backupMode": "log"}), (RESTORES, {})],
    ids=["Backup", "log Backup", "Restore"],
)
@pytest.mark.parametrize(
    ("secret", "expected"),
    [("none", _MISSING), ("half", "then Secret half lacks the key secret_key; add it")],
    ids=["missing", "without a key"],
)
def test_a_wait_for_the_cluster_names_a_secret_that_the_job_would_lack(
    resource: Resource, spec: dict[str, Any], secret: str, expected: str
) -> None:
    world = BackupsWorld(resource)
    try:
        world.add_secret("half", access_key="AK")
        world.set_serving(stores=1)
        world.add(s3=S3 | {"secretName": secret}, **spec)
        world.run(15)
        status, reason, message = world.condition("Waiting")
        assert ("True", "ClusterNotServing") == (status, reason)
        assert message.endswith(expected)
        assert ([], None) == (world.jobs(), world.backup()["metadata"].get("finalizers"))
    finally:
        world.stop()


@pytest.mark.parametrize("spec", [{}, {"backupMode": "log"}], ids=["snapshot", "log"])
def test_a_backup_gets_its_finalizer_only_when_nothing_is_missing_for_its_job(spec: dict[str, Any]) -> None:
    world = BackupsWorld(BACKUPS)
    try:
        world.add(s3=S3 | {"secretName": "none"}, cleanPolicy="Delete", **spec)
        world.run(15)
        assert ([], None) == (world.jobs(), world.backup()["metadata"].get("finalizers"))
        world.add_secret("none", access_key="AK", secret_key="SK")
        world.run(120)
        assert (1, [FINALIZER]) == (len(world.jobs()), world.backup()["metadata"].get("finalizers"))
    finally:
        world.stop()


@pytest.mark.parametrize(
    ("resource", "spec"),
    [(RESTORES, _TO_POINT), (COMPACT_BACKUPS, {"startTs": str(_AT), "endTs": str(_LATER)})],
    ids=["Restore", "CompactBackup"],
)
def test_a_wait_for_a_log_names_a_secret_that_the_job_would_lack(resource: Resource, spec: dict[str, Any]) -> None:
    world = BackupsWorld(resource)
    try:
        storage = S3 | {"secretName": "none"}
        log = tree("Backup", by_br(backupMode="log", s3=storage), name="log", namespace=NAMESPACE)
        said = {"phase": "Running", "commitTs": str(_AT), "logCheckpointTs": str(_AT), "backupPath": "s3://lab/full"}
        world.admin.create(BACKUPS, log | {"status": said}, NAMESPACE)
        world.run()
        world.add(s3=storage, **spec)
        world.run(15)
        # a CompactBackup has no such condition
        message = world.condition("Waiting")[2] or str(world.status()["message"])
        assert message.startswith("waiting for the log of Backup lab/log")
        assert message.endswith(_MISSING)
        assert [] == world.jobs()
    finally:
        world.stop()
