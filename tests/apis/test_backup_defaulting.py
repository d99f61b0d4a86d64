"""Defaults of a Backup or Restore, in memory (backup.md 3.1)."""

from apis.backups import BackoffRetryPolicy, CleanOption
from tests.apis.backups import ACCESS, backup, by_br, compact, restore


def test_the_retry_policy_has_defaults_without_the_api_server() -> None:
    """v1.6 without them neither retries nor fails (3.7)."""
    assert (
        BackoffRetryPolicy(min_retry_duration="300s", max_retry_times=2, retry_timeout="30m")
        == backup(by_br()).spec.backoff_retry_policy
    )
    given = backup(by_br(backoffRetryPolicy={"maxRetryTimes": 0, "retryTimeout": ""})).spec.backoff_retry_policy
    assert ("300s", 0, "30m") == (given.min_retry_duration, given.max_retry_times, given.retry_timeout)


def test_clean_options_below_1_count_as_absent() -> None:
    usual = CleanOption(
        batch_concurrency=10, routine_concurrency=100, page_size=10000, retry_count=5, snapshots_delete_ratio=1
    )
    assert usual == backup(by_br()).spec.clean_option
    assert usual == backup(by_br(cleanOption={"pageSize": -1, "retryCount": 0})).spec.clean_option
    found = backup(by_br(cleanOption={"pageSize": 7, "snapshotsDeleteRatio": 0.5})).spec.clean_option
    assert found
    assert (7, 0.5, 10) == (found.page_size, found.snapshots_delete_ratio, found.batch_concurrency)


def test_the_clusters_namespace_defaults_to_the_objects_own() -> None:
    for made in (backup(by_br()), restore(by_br()), compact(by_br(startTs="1", endTs="2"))):
        assert made.spec.br
        assert "ns" == made.spec.br.cluster_namespace
    elsewhere = backup(by_br(br={"cluster": "basic", "clusterNamespace": "other"}))
    assert elsewhere.spec.br
    assert "other" == elsewhere.spec.br.cluster_namespace


def test_access_to_tidb_defaults_to_root_at_4000() -> None:
    for access in (backup(by_br(**{"from": ACCESS})).spec.from_, restore(by_br(to=ACCESS)).spec.to):
        assert access
        assert (4000, "root") == (access.port, access.user)


def test_empty_modes_and_types_have_defaults() -> None:
    assert ("snapshot", "full") == (backup(by_br(backupMode="")).spec.backup_mode, backup(by_br()).spec.backup_type)
    assert ("snapshot", "full") == (restore(by_br(restoreMode="")).spec.restore_mode, restore(by_br()).spec.backup_type)
