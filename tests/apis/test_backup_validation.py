"""Mistakes are reported before a Job is created: every rule of backup.md 3.6, 4.5 and 6 with its sentence."""

from typing import Any

import pytest

from apis.backup_defaulting import with_backup_defaults, with_compact_defaults, with_restore_defaults
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.restores import Restore
from apis.shared import Json
from apis.validation.backups import DOTTED, validate_backup, validate_compact, validate_restore
from tests.apis.backups import ACCESS, S3, backup, by_br, compact, recorded, restore

NEW = "v8.5.2"
EXPORT: Json = {"from": ACCESS, "s3": S3, "storageSize": "10Gi"}
IMPORT: Json = {"to": ACCESS, "s3": {"provider": "aws", "path": "lab/a.tgz"}, "storageSize": "10Gi"}
LOCAL: Json = {"volume": {"name": "nfs"}, "volumeMount": {"name": "nfs", "mountPath": "/backup"}}


def of_backup(spec: Json, version: str = NEW, **metadata: Any) -> list[str]:
    """The problems of a Backup."""
    return [str(problem) for problem in validate_backup(backup(spec, **metadata), version)]


def of_restore(spec: Json, version: str = NEW, **metadata: Any) -> list[str]:
    """The problems of a Restore."""
    return [str(problem) for problem in validate_restore(restore(spec, **metadata), version)]


def local(**changes: Any) -> Json:
    """A local volume with another mount."""
    return {"br": {"cluster": "basic"}, "local": LOCAL | {"volumeMount": LOCAL["volumeMount"] | changes}}


_NAMELESS = ("env", "additionalVolumes", "additionalVolumeMounts")


@pytest.mark.parametrize("field", _NAMELESS)
def test_entries_of_named_lists_need_a_name(field: str) -> None:
    told = f"spec.{field}[1].name: is required"
    entries = {field: [{"name": "a"}, {"value": "b"}]}
    assert [told] == of_backup(by_br(**entries))
    assert [told] == of_restore(by_br(**entries))
    compaction = compact(by_br(startTs="7", endTs="8", **entries))
    assert [told] == [str(problem) for problem in validate_compact(compaction)]


def test_accepts_objects_recorded_from_v1_6() -> None:
    backups = {name: with_backup_defaults(decode(item, Backup)) for name, item in recorded("Backup")}
    restores = {name: with_restore_defaults(decode(item, Restore)) for name, item in recorded("Restore")}
    compacts = {name: with_compact_defaults(decode(item, CompactBackup)) for name, item in recorded("CompactBackup")}
    assert {} == {name: found for name, made in backups.items() if (found := validate_backup(made, NEW))}
    assert {} == {name: found for name, made in restores.items() if (found := validate_restore(made, NEW))}
    assert {} == {name: found for name, made in compacts.items() if (found := validate_compact(made))}


@pytest.mark.parametrize(
    "spec", [by_br(), EXPORT, local(), by_br(backupMode="log"), by_br(backupMode="log", logTruncateUntil="7")]
)
def test_accepts_complete_backups(spec: Json) -> None:
    assert [] == of_backup(spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            EXPORT | {"from": None},
            [
                "spec.from.host: is required, since spec.br is absent; name the Service of TiDB",
                "spec.from.secretName: is required, since spec.br is absent; "
                "name a Secret with the user's password in the key password",
            ],
        ),
        (
            EXPORT | {"from": {"host": "", "secretName": "a"}},
            ["spec.from.host: is required, since spec.br is absent; name the Service of TiDB"],
        ),
        (
            EXPORT | {"storageSize": ""},
            ["spec.storageSize: is required, since spec.br is absent; give the volume a size, such as 100Gi"],
        ),
        (EXPORT | {"storageSize": "big"}, ['spec.storageSize: "big": must be a size such as 100Gi']),
        (EXPORT | {"storageSize": "0"}, ['spec.storageSize: "0": must be more than 0 and less than 8Ei']),
        (
            EXPORT | {"storageSize": "8Ei"},
            ['spec.storageSize: "8Ei": must be more than 0 and less than 8Ei'],
        ),
        (
            EXPORT | {"backupMode": "log"},
            ["spec.br: is required for mode log; name the TidbCluster in spec.br.cluster"],
        ),
        (
            {"from": ACCESS, "storageSize": "1Gi", "local": LOCAL},
            ["spec.local: can't hold the archives of exports; use s3 or gcs, or back up with BR (spec.br)"],
        ),
        ({"from": ACCESS, "storageSize": "1Gi"}, ["spec: names no storage; set s3 or gcs"]),
        (by_br(br={"cluster": ""}), ["spec.br.cluster: is required; name the TidbCluster"]),
        (by_br(backupType="raw"), ['spec.backupType: "raw": must be one of full, db, table']),
        (by_br(backupType="db"), ["spec.br.db: is required for type db; name the database"]),
        (
            by_br(backupType="table"),
            [
                "spec.br.db: is required for type table; name the database",
                "spec.br.table: is required for type table; name the table",
            ],
        ),
        (by_br(backupMode="both"), ['spec.backupMode: "both": must be snapshot or log']),
        (
            by_br(backupMode="volume-snapshot"),
            [
                'spec.backupMode: "volume-snapshot": is not offered; use snapshot, '
                "which BR reads from the cluster itself"
            ],
        ),
        (
            by_br(backupMode="log", commitTs="soon"),
            ['spec.commitTs: "soon": must be a TSO, or a time such as 2024-05-01T10:00:00Z'],
        ),
        (
            by_br(backupMode="log", logTruncateUntil="soon"),
            ['spec.logTruncateUntil: "soon": must be a TSO, or a time such as 2024-05-01T10:00:00Z'],
        ),
        (
            by_br(backupMode="log", logStop=True, logSubcommand="log-pause"),
            ['spec.logSubcommand: "log-pause": can\'t be combined with spec.logStop; remove one of them'],
        ),
        (
            by_br(backoffRetryPolicy={"minRetryDuration": "soon", "retryTimeout": "-1s", "maxRetryTimes": -1}),
            [
                'spec.backoffRetryPolicy.minRetryDuration: "soon": must be a duration such as 90s, 10m or 1h30m',
                'spec.backoffRetryPolicy.retryTimeout: "-1s": must not be negative',
                "spec.backoffRetryPolicy.maxRetryTimes: -1: must be at least 0",
            ],
        ),
    ],
)
def test_each_broken_rule_of_a_backup_has_its_message(spec: Json, expected: list[str]) -> None:
    assert expected == of_backup({key: value for key, value in spec.items() if value is not None})


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({}, ["spec: names no storage; set s3, gcs, azblob or local"]),
        (
            {"s3": S3, "local": LOCAL},
            [
                'spec: ["s3", "local"]: only one storage may be set; v1.6 would take s3 and ignore the rest, '
                "so remove the others"
            ],
        ),
        ({"s3": S3 | {"bucket": ""}}, ["spec.s3.bucket: is required; name the bucket"]),
        ({"s3": S3 | {"bucket": "/"}}, ["spec.s3.bucket: is required; name the bucket"]),
        (
            {"s3": S3 | {"bucket": "my bucket"}},
            [
                'spec.s3.bucket: "my bucket": can\'t be a bucket; '
                "its name has letters from a to z, digits, dots, dashes and underscores"
            ],
        ),
        (
            {"s3": S3 | {"bucket": "lab/.."}},
            ['spec.s3.bucket: "lab/..": must not have . or .. as a directory; write the path without them'],
        ),
        (
            {"s3": S3 | {"prefix": "a/./b"}},
            ['spec.s3.prefix: "a/./b": must not have . or .. as a directory; write the path without them'],
        ),
        (
            {"s3": S3 | {"provider": ""}},
            ["spec.s3.provider: is required; say which S3 it is, such as aws or ceph"],
        ),
        (
            {"s3": S3 | {"endpoint": "minio:9000"}},
            ['spec.s3.endpoint: "minio:9000": has no scheme; put http:// or https:// before the host'],
        ),
        (
            {"s3": S3 | {"endpoint": "http://"}},
            ['spec.s3.endpoint: "http://": has no host; use a URL such as https://minio.example.com:9000'],
        ),
        (
            {"s3": S3 | {"endpoint": "http://a:b"}},
            ['spec.s3.endpoint: "http://a:b": is no URL; use one such as https://minio.example.com:9000'],
        ),
        (
            {"gcs": {"projectId": ""}},
            [
                "spec.gcs.projectId: is required; name the project of the bucket",
                "spec.gcs.bucket: is required; name the bucket",
            ],
        ),
        (
            {"azblob": {}},
            [
                "spec.azblob.container: is required; name the container",
                "spec.azblob.storageAccount: is required without a Secret that has the key AZURE_STORAGE_ACCOUNT; "
                "name the storage account",
                "spec.azblob.secretName: is required without sasToken; name the Secret with the credentials",
            ],
        ),
        (
            {"local": local(name="other")["local"]},
            ['spec.local.volumeMount.name: "other": must be the name of the volume, nfs'],
        ),
        (
            {"local": local(mountPath="")["local"]},
            ["spec.local.volumeMount.mountPath: is required; name a directory such as /backup"],
        ),
        (
            {"local": local(mountPath="/a:b")["local"]},
            ['spec.local.volumeMount.mountPath: "/a:b": must not contain a colon; use another directory'],
        ),
        (
            {"local": local(mountPath="a")["local"]},
            ['spec.local.volumeMount.mountPath: "a": must be absolute; begin it with /'],
        ),
    ],
)
def test_each_broken_rule_of_a_storage_has_its_message(storage: Json, expected: list[str]) -> None:
    spec = {"br": {"cluster": "basic"}, **storage}
    assert expected == of_backup(spec)
    assert expected == of_restore(spec)
    dates = {"startTs": "1", "endTs": "2"}
    assert expected == [str(problem) for problem in validate_compact(compact(spec | dates))]


def test_an_export_may_name_ceph_without_a_scheme() -> None:
    assert [] == of_backup(EXPORT | {"s3": S3 | {"provider": "ceph", "endpoint": "ceph.example:7480"}})


def test_an_old_tikv_needs_sql_and_has_no_log_backup() -> None:
    assert [
        "spec.from.host: is required, since TiKV v4.0.7 is older than v4.0.8; name the Service of TiDB",
        "spec.from.secretName: is required, since TiKV v4.0.7 is older than v4.0.8; "
        "name a Secret with the user's password in the key password",
    ] == of_backup(by_br(), "v4.0.7")
    assert [] == of_backup(by_br(**{"from": ACCESS}), "v4.0.7")
    assert [
        'spec.backupMode: "log": needs TiKV v6.1.0 or newer, and the cluster runs v6.0.0; upgrade it first'
    ] == of_backup(by_br(backupMode="log"), "v6.0.0")
    assert ["spec.to.host", "spec.to.secretName"] == [
        problem.partition(": ")[0] for problem in of_restore(by_br(), "v4.0.7")
    ]


@pytest.mark.parametrize("version", ["nightly", "latest", ""])
def test_a_non_numeric_version_counts_as_new(version: str) -> None:
    assert [] == of_backup(by_br(backupMode="log"), version)


def test_refuses_a_name_that_does_not_fit_into_the_label_of_the_pods() -> None:
    assert [] == of_backup(by_br(), name="a" * 56)
    assert [
        f'metadata.name: "{"a" * 57}": is too long for the Job backup-<name>; use at most 56 characters'
    ] == of_backup(by_br(), name="a" * 57)
    assert [
        f'metadata.name: "{"a" * 44}": is too long for the Job backup-<name>-log-truncate; use at most 43 characters'
    ] == of_backup(by_br(backupMode="log"), name="a" * 44)


def pitr(**changes: Any) -> Json:
    """The spec of a restore to a point in time."""
    return by_br(restoreMode="pitr", **changes)


@pytest.mark.parametrize(
    "spec",
    [
        by_br(),
        IMPORT,
        pitr(logRestoreStartTs="7"),
        pitr(pitrFullBackupStorageProvider={"s3": S3}, pitrRestoredTs="2024-05-01 10:00:00"),
    ],
)
def test_accepts_complete_restores(spec: Json) -> None:
    assert [] == of_restore(spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            IMPORT | {"to": {"host": "", "secretName": ""}},
            [
                "spec.to.host: is required, since spec.br is absent; name the Service of TiDB",
                "spec.to.secretName: is required, since spec.br is absent; "
                "name a Secret with the user's password in the key password",
            ],
        ),
        (
            IMPORT | {"storageSize": ""},
            ["spec.storageSize: is required, since spec.br is absent; give the volume a size, such as 100Gi"],
        ),
        (
            IMPORT | {"s3": {"provider": "aws"}},
            ["spec.s3.path: is required, since spec.br is absent; name the archive, such as bucket/backup.tgz"],
        ),
        (
            {"to": ACCESS, "storageSize": "1Gi", "azblob": {"container": "a", "secretName": "b"}},
            ["spec.azblob: can't hold the archives of exports; use s3 or gcs, or back up with BR (spec.br)"],
        ),
        (
            IMPORT | {"restoreMode": "pitr", "logRestoreStartTs": "7"},
            ["spec.br: is required for mode pitr; name the TidbCluster in spec.br.cluster"],
        ),
        (by_br(restoreMode="some"), ['spec.restoreMode: "some": must be snapshot or pitr']),
        (
            by_br(restoreMode="volume-snapshot"),
            [
                'spec.restoreMode: "volume-snapshot": is not offered; '
                "restore a backup of mode snapshot or log with snapshot or pitr"
            ],
        ),
        (by_br(br={"cluster": ""}), ["spec.br.cluster: is required; name the TidbCluster"]),
        (by_br(backupType="raw"), ['spec.backupType: "raw": must be one of full, db, table']),
        (
            pitr(),
            [
                "spec.pitrFullBackupStorageProvider: is required in mode pitr, "
                "or spec.logRestoreStartTs where the snapshot has been restored already"
            ],
        ),
        (
            pitr(pitrFullBackupStorageProvider={"s3": S3}, logRestoreStartTs="7"),
            [
                'spec.pitrFullBackupStorageProvider: ["s3"]: can\'t be combined with spec.logRestoreStartTs '
                "in mode pitr; remove one of them"
            ],
        ),
        (
            pitr(pitrFullBackupStorageProvider={"s3": {"provider": "aws"}}),
            ["spec.pitrFullBackupStorageProvider.s3.bucket: is required; name the bucket"],
        ),
        (
            by_br(
                restoreMode="pitr",
                s3=S3 | {"endpoint": "http://a:9000"},
                pitrFullBackupStorageProvider={"s3": S3 | {"endpoint": "http://b:9000"}},
            ),
            [
                'spec.pitrFullBackupStorageProvider.s3.endpoint: "http://b:9000": '
                "must equal spec.s3.endpoint, http://a:9000, since BR has one; copy the snapshot there"
            ],
        ),
        (
            pitr(logRestoreStartTs="then", pitrRestoredTs="now"),
            [
                'spec.logRestoreStartTs: "then": must be a TSO, or a time such as 2024-05-01T10:00:00Z',
                'spec.pitrRestoredTs: "now": must be a TSO, or a time such as 2024-05-01T10:00:00Z',
            ],
        ),
        (by_br(backoffLimit=-1), ["spec.backoffLimit: -1: must be at least 0"]),
    ],
)
def test_each_broken_rule_of_a_restore_has_its_message(spec: Json, expected: list[str]) -> None:
    assert expected == of_restore(spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"br": None},
            ["spec.br: is required; name the TidbCluster in spec.br.cluster"],
        ),
        (
            {"startTs": "", "endTs": ""},
            [
                "spec.startTs: is required; give a TSO, or a time such as 2024-05-01T10:00:00Z",
                "spec.endTs: is required; give a TSO, or a time such as 2024-05-01T10:00:00Z",
            ],
        ),
        ({"endTs": "later"}, ['spec.endTs: "later": must be a TSO, or a time such as 2024-05-01T10:00:00Z']),
        ({"startTs": "9"}, ['spec.endTs: "8": must not be before spec.startTs, 9']),
        ({"concurrency": 0}, ["spec.concurrency: 0: must be at least 1"]),
        ({"maxRetryTimes": -1}, ["spec.maxRetryTimes: -1: must be at least 0"]),
        ({"shardCount": 2}, ["spec.shardCount: 2: needs spec.mode sharded; set it, or remove the number"]),
        (
            {"mode": "sharded", "endTs": None, "physicalFileCacheCapacity": "-1Gi"},
            [
                "spec.shardCount: is required with spec.mode sharded; give the number of shards",
                'spec.physicalFileCacheCapacity: "-1Gi": must not be negative',
            ],
        ),
        ({"mode": "sharded", "shardCount": 2, "endTs": None}, []),
    ],
)
def test_each_broken_rule_of_a_compaction_has_its_message(spec: Json, expected: list[str]) -> None:
    whole = by_br(startTs="7", endTs="8") | spec
    found = validate_compact(compact({key: value for key, value in whole.items() if value is not None}))
    assert expected == [str(problem) for problem in found]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a" * 60, ""),
        ("a" * 61, "is too long for the Job <name>-10; use at most 60 characters"),
        ("a.b", DOTTED),
    ],
)
def test_the_name_of_a_sharded_compaction_fits_the_host_names_of_its_pods(name: str, problem: str) -> None:
    spec = by_br(startTs="7", endTs="8", mode="sharded", shardCount=11)
    found = validate_compact(compact(spec, name=name))
    assert ([problem] if problem else []) == [each.message for each in found]
    assert [] == validate_compact(compact(by_br(startTs="7", endTs="8"), name=name))
