"""The controllers' Jobs and the command agree on arguments (backup.md 2.2, 3.11, 4.5)."""

from typing import Any

import pytest

from apis import backup_paths
from apis.log_backups import COMMANDS
from apis.storage_providers import StorageProvider
from backup_manager import places
from backup_manager.flags import Arguments, parse
from kube.objects import Json
from member.backups import jobs
from member.backups.environment import Secrets
from member.backups.pods import ManagerSettings
from tests.apis.backups import ACCESS, S3, backup, by_br, restore
from tests.apis.clusters import cluster, minimal

CERTIFICATE = {"ca.crt": "d", "tls.crt": "e", "tls.key": "f"}
SECRETS: Secrets = {
    "keys": {"access_key": "a", "secret_key": "b"},
    "password": {"password": "c"},
    "basic-cluster-client-secret": CERTIFICATE,
    "x": CERTIFICATE,
}
SETTINGS = ManagerSettings()
VOLUME: Json = {"volume": {"name": "v"}, "volumeMount": {"name": "v", "mountPath": "/mnt//backup/"}, "prefix": "/a/b/"}


def taken(job: Json) -> Arguments:
    """The command's parsed arguments from a Job; none may be missing or unknown."""
    return parse(job["spec"]["template"]["spec"]["containers"][0]["args"])


@pytest.mark.rule("backup-3.11")
def test_the_arguments_of_backups_are_read() -> None:
    tc = cluster({**minimal(), "tlsCluster": {"enabled": True}})
    snapshot = taken(jobs.snapshot_job(backup(by_br(**{"from": ACCESS})), tc, SECRETS, SETTINGS))
    assert ("backup", "ns", "demo", "snapshot") == (
        snapshot.command,
        *(snapshot.text(name) for name in ("namespace", "backupName", "mode")),
    )
    assert snapshot.text("tikvVersion").startswith("v")
    assert snapshot.is_set("cluster-tls")
    clean = taken(jobs.clean_job(backup(by_br()), SECRETS, SETTINGS))
    assert ("clean", "demo") == (clean.command, clean.text("backupName"))
    export = backup({"s3": S3, "from": {**ACCESS, "tlsClientSecretName": "x"}, "storageSize": "1Gi"})
    assert taken(jobs.export_job(export, SECRETS, SETTINGS)).is_set("client-tls")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.rule("backup-3.11")
def test_the_arguments_of_log_backups_are_read(command: str) -> None:
    made = backup(by_br(backupMode="log", commitTs="400", logTruncateUntil="500"))
    found = taken(jobs.log_job(made, cluster(minimal()), SECRETS, SETTINGS, command))
    assert ("log", command) == (found.text("mode"), found.text("subcommand"))
    given = {"log-start": ("400", "0"), "log-truncate": ("0", "500")}.get(command, ("0", "0"))
    assert given == (found.text("commit-ts"), found.text("truncate-until"))


@pytest.mark.parametrize(
    ("spec", "mode", "point"),
    [
        ({}, "snapshot", "0"),
        ({"restoreMode": "pitr", "logRestoreStartTs": "1"}, "pitr", "0"),
        ({"restoreMode": "pitr", "logRestoreStartTs": "1", "pitrRestoredTs": "400"}, "pitr", "400"),
    ],
)
@pytest.mark.rule("backup-4.5")
def test_the_arguments_of_restores_are_read(spec: Json, mode: str, point: str) -> None:
    made = restore(by_br(**spec))
    for build, abort in ((jobs.restore_job, False), (jobs.prune_job, True)):
        found = taken(build(made, cluster(minimal()), SECRETS, SETTINGS))
        assert ("demo", mode, point) == tuple(found.text(name) for name in ("restoreName", "mode", "pitrRestoredTs"))
        assert abort is found.is_set("abort")


@pytest.mark.parametrize(
    "storage",
    [
        {"s3": {"provider": "aws", "bucket": "/b/c/", "prefix": "//p//q/"}},
        {"s3": {"provider": "aws", "bucket": "b"}},
        {"gcs": {"projectId": "p", "bucket": "b", "prefix": "x/"}},
        {"azblob": {"container": "c", "prefix": "/x"}},
        {"local": VOLUME},
    ],
)
@pytest.mark.rule("backup-2.2")
def test_controller_and_command_use_the_same_path(storage: Any) -> None:
    spec: StorageProvider = backup(by_br(**{"s3": None, **storage})).spec
    path = places.backup_path(spec)
    assert backup_paths.backup_path(spec) == path
    location = places.location_of(spec)
    bucket = "/".join(part for part in location.bucket.split("/") if part)
    assert f"{bucket}/{location.prefix}".strip("/") == path.partition("://")[2].strip("/")
