"""BR's command line, word by word (backup.md 2.2, 2.4, 7.6)."""

import pytest

from apis.backups import Backup
from apis.decoding import decode
from apis.restores import Restore
from apis.storage_providers import StorageProvider
from backup_manager.br_arguments import (
    NoBR,
    PointInTime,
    abort_arguments,
    backup_arguments,
    log_arguments,
    restore_arguments,
)
from backup_manager.places import UnknownStorage, backup_path, location_of, storage_flags, storage_url
from backup_manager.storage.location import Kind
from kube.objects import Json

S3 = {"provider": "aws", "bucket": "bucket", "prefix": "/some//prefix/"}
LOCAL = {"volume": {"name": "v"}, "volumeMount": {"name": "v", "mountPath": "/mnt/backup/"}, "prefix": "a/b"}


def backup(br: Json | None = None, **spec: object) -> Backup:
    body = {"br": {"cluster": "basic", **(br or {})}, "s3": {"provider": "aws", "bucket": "b", "prefix": "p"}, **spec}
    return decode({"metadata": {"name": "demo", "namespace": "ns"}, "spec": body}, Backup)


def restore(br: Json | None = None, **spec: object) -> Restore:
    body = {"br": {"cluster": "basic", **(br or {})}, "s3": {"provider": "aws", "bucket": "b", "prefix": "p"}, **spec}
    return decode({"metadata": {"name": "demo", "namespace": "ns"}, "spec": body}, Restore)


def storage(**providers: Json) -> StorageProvider:
    return decode(providers, StorageProvider)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"s3": S3}, "s3://bucket/some/prefix"),
        ({"gcs": {"projectId": "p", "bucket": "bucket", "prefix": "x"}}, "gcs://bucket/x/"),
        ({"gcs": {"projectId": "p", "bucket": "bucket"}}, "gcs://bucket/"),
        ({"azblob": {"container": "c", "prefix": "x/y"}}, "azure://c/x/y/"),
        ({"local": LOCAL}, "local:///mnt/backup/a/b"),
        ({"s3": S3, "local": LOCAL}, "s3://bucket/some/prefix"),
    ],
)
@pytest.mark.rule("backup-2.2")
def test_the_path_of_a_backup(given: Json, path: str) -> None:
    assert path == backup_path(storage(**given))


@pytest.mark.rule("backup-2.2")
def test_rejects_a_spec_without_storage() -> None:
    for function in (backup_path, storage_flags, location_of):
        with pytest.raises(UnknownStorage, match="storage unknown not supported yet"):
            function(storage())


@pytest.mark.rule("backup-2.4")
def test_escapes_special_characters_of_urls() -> None:
    """v1.6's BR writes to `s3://b/100`, where v1.6 looks for `backupmeta` at `100?`, or fails for `%`."""
    s3 = {"provider": "aws", "bucket": "b", "prefix": "50%/a?b#c d ö"}
    assert "--storage=s3://b/50%25/a%3Fb%23c d ö" == storage_flags(storage(s3=s3))[0]


@pytest.mark.rule("backup-2.2")
def test_a_bucket_with_a_slash_is_bucket_and_prefix() -> None:
    location = location_of(storage(s3={"provider": "aws", "bucket": "/a/b/", "prefix": "c/"}))
    assert ("a", "b/c") == (location.bucket, location.prefix)


@pytest.mark.parametrize(
    ("provider", "force", "style"), [("aws", None, True), ("alibaba", None, False), ("netease", True, True)]
)
@pytest.mark.rule("backup-2.5")
def test_buckets_are_in_the_path_by_default(provider: str, force: bool | None, style: bool) -> None:
    found = location_of(storage(s3={"provider": provider, "bucket": "b", "forcePathStyle": force}))
    assert style == found.path_style


@pytest.mark.rule("backup-2.4")
def test_uses_the_kms_key_of_br_as_well() -> None:
    """Bucket policies may require it: in v1.6 only BR writes with it."""
    options = ["--s3.sse-kms-key-id=old", "--s3.sse-kms-key-id=new", "--s3.sse=aws:kms"]
    made = backup(br={"options": options}, s3=S3 | {"sse": "AES256"})
    found = location_of(made.spec)
    assert ("aws:kms", "new") == (found.encryption, found.encryption_key)


@pytest.mark.rule("backup-2.3")
def test_an_address_of_ceph_may_lack_its_scheme() -> None:
    ceph = storage(s3={"provider": "ceph", "bucket": "b", "endpoint": "rook:80"})
    assert "http://rook:80" == location_of(ceph).endpoint


def test_a_volume_is_its_mount_path() -> None:
    location = location_of(storage(local=LOCAL))
    assert (Kind.LOCAL, "/mnt/backup/", "a/b") == (location.kind, location.bucket, location.prefix)


@pytest.mark.rule("backup-2.4")
def test_s3_flags_are_ordered_and_only_set_ones() -> None:
    every = S3 | {
        "region": "eu",
        "endpoint": "http://minio:9000",
        "sse": "aws:kms",
        "acl": "private",
        "storageClass": "GLACIER",
        "forcePathStyle": False,
    }
    assert [
        "--storage=s3://bucket/some/prefix?force-path-style=false",
        "--s3.region=eu",
        "--s3.provider=aws",
        "--s3.endpoint=http://minio:9000",
        "--s3.sse=aws:kms",
        "--s3.acl=private",
        "--s3.storage-class=GLACIER",
    ] == storage_flags(storage(s3=every))
    assert ["--storage=s3://bucket/some/prefix", "--s3.provider=aws"] == storage_flags(storage(s3=S3))


@pytest.mark.rule("backup-2.4")
def test_flags_of_gcs_azure_and_volumes() -> None:
    gcs = {"projectId": "p", "bucket": "b", "prefix": "x", "storageClass": "COLDLINE", "objectAcl": "private"}
    assert ["--storage=gcs://b/x/", "--gcs.storage-class=COLDLINE", "--gcs.predefined-acl=private"] == storage_flags(
        storage(gcs=gcs)
    )
    azblob = {"container": "c", "prefix": "p", "storageAccount": "acc", "sasToken": "sv=1&sig=a/b", "accessTier": "Hot"}
    assert [
        "--storage=azure://c/p/?account-name=acc&sas-token=sv%3D1%26sig%3Da%2Fb",
        "--azblob.access-tier=Hot",
    ] == storage_flags(storage(azblob=azblob))
    assert ["--storage=local:///mnt/backup/a/b"] == storage_flags(storage(local=LOCAL))


@pytest.mark.rule("backup-7.6")
def test_the_arguments_of_a_full_backup() -> None:
    assert [
        "backup",
        "full",
        "--pd=basic-pd.ns:2379",
        "--storage=s3://b/p",
        "--s3.provider=aws",
    ] == backup_arguments(backup(), cluster_tls=False)


@pytest.mark.rule("backup-7.6")
def test_a_backup_with_every_option() -> None:
    br = {
        "clusterNamespace": "db",
        "db": "d",
        "table": "t",
        "logLevel": "debug",
        "statusAddr": ":10080",
        "concurrency": 4,
        "rateLimit": 128,
        "timeAgo": "1h",
        "checksum": False,
        "checkRequirements": True,
        "sendCredToTikv": True,
        "options": ["--concurrency=8", "--gcttl=5h"],
    }
    assert [
        "backup",
        "table",
        "--backupts=400036290571534337",
        "--pd=basic-pd.db:2379",
        "--ca=/var/lib/cluster-client-tls/ca.crt",
        "--cert=/var/lib/cluster-client-tls/tls.crt",
        "--key=/var/lib/cluster-client-tls/tls.key",
        "--log-level=debug",
        "--status-addr=:10080",
        "--send-credentials-to-tikv=true",
        "--storage=s3://b/p",
        "--s3.provider=aws",
        "--table=t",
        "--db=d",
        "--concurrency=4",
        "--ratelimit=128",
        "--timeago=1h",
        "--checksum=false",
        "--check-requirements=true",
        "--concurrency=8",
        "--gcttl=5h",
    ] == backup_arguments(backup(br, backupType="table", commitTs="400036290571534337"), cluster_tls=True)


@pytest.mark.rule("backup-7.6")
def test_a_table_filter_replaces_db_and_table() -> None:
    words = backup_arguments(backup({"db": "d"}, backupType="db", tableFilter=["a.*", "!b.*"]), cluster_tls=False)
    assert ["--filter", "a.*", "--filter", "!b.*"] == words[-4:]
    assert "--db=d" not in words
    assert "--db=d" == backup_arguments(backup({"db": "d"}, backupType="db"), cluster_tls=False)[-1]


@pytest.mark.rule("backup-7.6")
def test_a_restore_has_its_options_in_another_order() -> None:
    br = {"concurrency": 4, "rateLimit": 128, "checksum": True, "checkRequirements": False, "onLine": True}
    assert [
        "restore",
        "full",
        "--pd=basic-pd.ns:2379",
        "--storage=s3://b/p",
        "--s3.provider=aws",
        "--concurrency=4",
        "--checksum=true",
        "--check-requirements=false",
        "--ratelimit=128",
        "--online=true",
        "--last",
    ] == restore_arguments(restore({**br, "options": ["--last"]}), None, cluster_tls=False)


@pytest.mark.rule("backup-7.6")
def test_a_point_in_time_is_the_last_flag() -> None:
    full = {"s3": {"provider": "aws", "bucket": "full", "prefix": "base", "region": "eu", "forcePathStyle": True}}
    words = restore_arguments(
        restore({"options": ["--x"]}, pitrFullBackupStorageProvider=full), PointInTime("0"), cluster_tls=False
    )
    assert ["restore", "point"] == words[:2]
    assert ["--x", "--restored-ts=0", "--full-backup-storage=s3://full/base"] == words[-3:]
    words = restore_arguments(restore(logRestoreStartTs="42"), PointInTime("43"), cluster_tls=False)
    assert ["--restored-ts=43", "--start-ts=42"] == words[-2:]


@pytest.mark.rule("backup-7.7")
def test_abort_is_the_restore_with_a_word_before() -> None:
    words = restore_arguments(restore(backupType="db"), None, cluster_tls=True)
    assert ["abort", *words] == abort_arguments(restore(backupType="db"), None, cluster_tls=True)


def test_a_spec_without_br_is_refused() -> None:
    with pytest.raises(NoBR, match=r"spec\.br is missing"):
        backup_arguments(decode({"metadata": {"name": "x"}, "spec": {"s3": S3}}, Backup), cluster_tls=False)


def test_a_url_of_azure_without_account_and_token_has_no_query() -> None:
    assert "azure://c/" == storage_url(storage(azblob={"container": "c"}))


LOG_COMMON = ["--pd=basic-pd.ns:2379", "--storage=s3://b/p", "--s3.provider=aws"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("log-start", ["log", "start", "--task-name=demo", "--start-ts=400"]),
        ("log-stop", ["log", "stop", "--task-name=demo"]),
        ("log-pause", ["log", "pause", "--task-name=demo"]),
        ("log-resume", ["log", "resume", "--task-name=demo"]),
        ("log-truncate", ["log", "truncate", "--until=500"]),
    ],
)
@pytest.mark.rule("backup-7.5")
def test_log_backups(command: str, words: list[str]) -> None:
    found = log_arguments(backup(backupMode="log"), command, "400", "500", cluster_tls=False)
    assert [*words, *LOG_COMMON] == found


@pytest.mark.rule("backup-7.5")
def test_a_log_begins_now_by_default_and_a_truncation_needs_an_end() -> None:
    assert ["log", "start", "--task-name=demo", *LOG_COMMON] == log_arguments(
        backup(), "log-start", "0", "0", cluster_tls=False
    )
    for missing in ("", "0"):
        with pytest.raises(ValueError, match=r"spec\.logTruncateUntil"):
            log_arguments(backup(), "log-truncate", "0", missing, cluster_tls=False)


@pytest.mark.rule("backup-1.1")
def test_a_time_without_a_zone_is_utc_for_br_too() -> None:
    until = log_arguments(backup(), "log-truncate", "0", "2024-05-01 00:00:00", cluster_tls=False)[2]
    assert "--until=449451550310400000" == until
    until = log_arguments(backup(), "log-truncate", "0", "2024-05-01T00:00:00Z", cluster_tls=False)[2]
    assert "--until=2024-05-01T00:00:00Z" == until
