"""Rules of Backup, Restore and CompactBackup (backup.md 3.6, 4.5, 6; defaults-and-validation.md 5).

All problems are collected; v1.6 stops at the first. The objects have their defaults.
"""

from collections.abc import Iterator

from apis import tso
from apis.backup_shared import BRConfig, JobSpec, TiDBAccessConfig
from apis.backups import Backup, BackupSpec
from apis.compact_backups import SHARDED, CompactBackup, CompactSpec
from apis.images import at_least
from apis.problem import Problem
from apis.restores import Restore, RestoreSpec
from apis.storage_providers import StorageProvider
from apis.validation import pods, storage_providers
from ports import duration, quantity

TYPES = ("full", "db", "table")
BACKUP_MODES = ("snapshot", "log")
RESTORE_MODES = ("snapshot", "pitr")
_SELF_CONTAINED = "v4.0.8"
"""The first TiKV whose BR needs no SQL."""
_LOG_BACKUP = "v6.1.0"
_LONGEST_LABEL = 63
DOTTED = f"must have no dot with mode {SHARDED}: the name becomes the host names of pods"


def validate_backup(backup: Backup, tikv_version: str = "") -> list[Problem]:
    """All problems of a Backup; `tikv_version` is the version of its cluster's TiKV, empty if unknown."""
    spec = backup.spec
    longest = "-log-truncate" if spec.backup_mode == "log" else ""
    return [
        *_check_name(backup.metadata.name, "backup-", longest),
        *_check_backup_mode(spec),
        *_check_tool(spec, spec.from_, "spec.from", tikv_version),
        *_check_log(spec, tikv_version),
        *_check_retries(spec),
        *_check_entries(spec),
    ]


def validate_restore(restore: Restore, tikv_version: str = "") -> list[Problem]:
    """All problems of a Restore; `tikv_version` is the version of its cluster's TiKV, empty if unknown."""
    spec = restore.spec
    return [
        *_check_name(restore.metadata.name, "restore-", "-prune" if spec.prune else ""),
        *_check_replication(restore),
        *_check_restore_mode(spec),
        *_check_tool(spec, spec.to, "spec.to", tikv_version),
        *_check_pitr(spec),
        *_check_least("spec.backoffLimit", spec.backoff_limit, 0),
        *_check_entries(spec),
    ]


def validate_compact(compact: CompactBackup) -> list[Problem]:
    """Everything that is wrong with a CompactBackup."""
    spec = compact.spec
    problems = [*_check_compact_name(compact), *storage_providers.check(spec, "spec")]
    if spec.br is None:
        problems.append(Problem("spec.br", None, "is required; name the TidbCluster in spec.br.cluster"))
    else:
        problems += _check_cluster(spec.br)
    span: dict[str, int] = {}
    for field, text in (("spec.startTs", spec.start_ts), ("spec.endTs", spec.end_ts)):
        if not text and (field, spec.mode) == ("spec.endTs", SHARDED):
            continue  # tikv-ctl compacts up to the checkpoint of the log
        if not text:
            problems.append(Problem(field, None, "is required; give a TSO, or a time such as 2024-05-01T10:00:00Z"))
        elif misfit := _check_timestamp(field, text):
            problems.append(misfit)
        else:
            span[field] = tso.parse(text)
    if len(span) > 1 and span["spec.endTs"] < span["spec.startTs"]:
        problems.append(Problem("spec.endTs", spec.end_ts, f"must not be before spec.startTs, {spec.start_ts}"))
    problems += _check_entries(spec)
    problems += _check_least("spec.concurrency", spec.concurrency, 1)
    problems += _check_least("spec.maxRetryTimes", spec.max_retry_times, 0)
    problems += _check_shards(spec)
    return problems


def _check_compact_name(compact: CompactBackup) -> Iterator[Problem]:
    """The name of the Job, and with the number of a shard the host name of a pod."""
    name, spec = compact.metadata.name, compact.spec
    if spec.mode != SHARDED:
        yield from _check_name(name, "", "")
        return
    yield from _check_name(name, "", shard_suffix(spec))
    if "." in name:
        yield Problem("metadata.name", name, DOTTED)


def shard_suffix(spec: CompactSpec) -> str:
    """The end of the longest host name among the shards' pods."""
    return f"-{(spec.shard_count or 1) - 1}"


def _check_shards(spec: CompactSpec) -> Iterator[Problem]:
    """The fields of mode sharded (CMP-3, CMP-4, CMP-5)."""
    count, capacity = spec.shard_count, spec.physical_file_cache_capacity.strip()
    if spec.mode != SHARDED:
        if count is not None:
            yield Problem("spec.shardCount", count, f"needs spec.mode {SHARDED}; set it, or remove the number")
        return
    if count is None:
        yield Problem("spec.shardCount", None, f"is required with spec.mode {SHARDED}; give the number of shards")
    else:
        yield from _check_least("spec.shardCount", count, 1)
    if not capacity:
        return
    try:
        is_negative = quantity.parse(capacity) < 0
    except ValueError as error:
        yield Problem("spec.physicalFileCacheCapacity", capacity, str(error))
    else:
        if is_negative:
            yield Problem("spec.physicalFileCacheCapacity", capacity, "must not be negative")


def _check_entries(spec: JobSpec) -> Iterator[Problem]:
    """Items that are merged into pods by name must have one; otherwise the API server would refuse the Job."""
    yield from pods.check_named(spec.env, "spec.env")
    yield from pods.check_named(spec.additional_volumes, "spec.additionalVolumes")
    yield from pods.check_named(spec.additional_volume_mounts, "spec.additionalVolumeMounts")


def _check_name(name: str, before: str, behind: str) -> Iterator[Problem]:
    """The name of the Job becomes a label of its pods."""
    room = _LONGEST_LABEL - len(before) - len(behind)
    if len(name) > room:
        message = f"is too long for the Job {before}<name>{behind}; use at most {room} characters"
        yield Problem("metadata.name", name, message)


def _check_backup_mode(spec: BackupSpec) -> Iterator[Problem]:
    if spec.backup_mode == "volume-snapshot":
        message = "is not offered; use snapshot, which BR reads from the cluster itself"
        yield Problem("spec.backupMode", spec.backup_mode, message)
    elif spec.backup_mode not in BACKUP_MODES:
        yield Problem("spec.backupMode", spec.backup_mode, f"must be {' or '.join(BACKUP_MODES)}")


def _check_restore_mode(spec: RestoreSpec) -> Iterator[Problem]:
    if spec.restore_mode == "volume-snapshot":
        message = "is not offered; restore a backup of mode snapshot or log with snapshot or pitr"
        yield Problem("spec.restoreMode", spec.restore_mode, message)
    elif spec.restore_mode not in RESTORE_MODES:
        yield Problem("spec.restoreMode", spec.restore_mode, f"must be {' or '.join(RESTORE_MODES)}")


def _check_tool(
    spec: BackupSpec | RestoreSpec, access: TiDBAccessConfig | None, field: str, tikv_version: str
) -> Iterator[Problem]:
    """The requirements of BR, or without it of Dumpling and TiDB Lightning."""
    if spec.br is None:
        yield from _check_access(access, field, "spec.br is absent")
        yield from _check_size(spec.storage_size)
        yield from _check_modes_of_br(spec)
        if isinstance(spec, BackupSpec):
            yield from storage_providers.check(spec, "spec", archives=True)
        else:
            yield from _check_archive(spec)
        return
    if tikv_version and not at_least(tikv_version, _SELF_CONTAINED):
        yield from _check_access(access, field, f"TiKV {tikv_version} is older than {_SELF_CONTAINED}")
    yield from _check_cluster(spec.br)
    yield from _check_type(spec.backup_type, spec.br)
    yield from storage_providers.check(spec, "spec")


def _check_access(access: TiDBAccessConfig | None, field: str, why: str) -> Iterator[Problem]:
    if access is None or not access.host:
        yield Problem(f"{field}.host", None, f"is required, since {why}; name the Service of TiDB")
    if access is None or not access.secret_name:
        message = f"is required, since {why}; name a Secret with the user's password in the key password"
        yield Problem(f"{field}.secretName", None, message)


def _check_size(size: str) -> Iterator[Problem]:
    field = "spec.storageSize"
    if not size:
        yield Problem(field, None, "is required, since spec.br is absent; give the volume a size, such as 100Gi")
        return
    try:
        if not 0 < quantity.parse(size) <= quantity.LARGEST:
            yield Problem(field, size, "must be more than 0 and less than 8Ei")
    except ValueError:
        yield Problem(field, size, "must be a size such as 100Gi")


def _check_modes_of_br(spec: BackupSpec | RestoreSpec) -> Iterator[Problem]:
    mode = spec.backup_mode if isinstance(spec, BackupSpec) else spec.restore_mode
    if mode in ("log", "pitr"):
        yield Problem("spec.br", None, f"is required for mode {mode}; name the TidbCluster in spec.br.cluster")


def _check_archive(spec: RestoreSpec) -> Iterator[Problem]:
    """An import reads one archive, which is named by its path."""
    found = list(spec.providers)
    if found not in (["s3"], ["gcs"]):
        yield from storage_providers.check(spec, "spec", archives=True)
    elif not (spec.s3 or spec.gcs).path:  # type: ignore[union-attr]  # one of them is there
        message = "is required, since spec.br is absent; name the archive, such as bucket/backup.tgz"
        yield Problem(f"spec.{found[0]}.path", None, message)
    if spec.s3 is not None and found == ["s3"]:
        yield from storage_providers.check_options(spec.s3, "spec.s3")


def _check_cluster(br: BRConfig) -> Iterator[Problem]:
    if not br.cluster:
        yield Problem("spec.br.cluster", None, "is required; name the TidbCluster")


def _check_type(kind: str, br: BRConfig) -> Iterator[Problem]:
    if kind not in TYPES:
        yield Problem("spec.backupType", kind, f"must be one of {', '.join(TYPES)}")
    if kind in ("db", "table") and not br.db:
        yield Problem("spec.br.db", None, f"is required for type {kind}; name the database")
    if kind == "table" and not br.table:
        yield Problem("spec.br.table", None, "is required for type table; name the table")


def _check_log(spec: BackupSpec, tikv_version: str) -> Iterator[Problem]:
    if spec.backup_mode != "log":
        return
    if tikv_version and not at_least(tikv_version, _LOG_BACKUP):
        message = f"needs TiKV {_LOG_BACKUP} or newer, and the cluster runs {tikv_version}; upgrade it first"
        yield Problem("spec.backupMode", spec.backup_mode, message)
    for field, text in (("spec.commitTs", spec.commit_ts), ("spec.logTruncateUntil", spec.log_truncate_until)):
        if misfit := _check_timestamp(field, text):
            yield misfit
    if spec.log_stop and spec.log_subcommand:
        message = "can't be combined with spec.logStop; remove one of them"
        yield Problem("spec.logSubcommand", spec.log_subcommand, message)


def _check_timestamp(field: str, text: str) -> Problem | None:
    try:
        tso.parse(text)
    except ValueError:
        return Problem(field, text, "must be a TSO, or a time such as 2024-05-01T10:00:00Z")
    return None


def _check_retries(spec: BackupSpec) -> Iterator[Problem]:
    policy = spec.backoff_retry_policy
    for key, text in (("minRetryDuration", policy.min_retry_duration), ("retryTimeout", policy.retry_timeout)):
        field = f"spec.backoffRetryPolicy.{key}"
        try:
            if duration.seconds(text) < 0:
                yield Problem(field, text, "must not be negative")
        except ValueError:
            yield Problem(field, text, "must be a duration such as 90s, 10m or 1h30m")
    yield from _check_least("spec.backoffRetryPolicy.maxRetryTimes", policy.max_retry_times, 0)


def _check_pitr(spec: RestoreSpec) -> Iterator[Problem]:
    if spec.restore_mode != "pitr":
        return
    full = spec.pitr_full_backup_storage_provider
    field = "spec.pitrFullBackupStorageProvider"
    if full.providers and spec.log_restore_start_ts:
        message = "can't be combined with spec.logRestoreStartTs in mode pitr; remove one of them"
        yield Problem(field, list(full.providers), message)
    elif full.providers:
        yield from storage_providers.check(full, field)
        yield from _check_endpoint(spec, full)
    elif not spec.log_restore_start_ts:
        message = "is required in mode pitr, or spec.logRestoreStartTs where the snapshot has been restored already"
        yield Problem(field, None, message)
    for name, text in (
        ("spec.logRestoreStartTs", spec.log_restore_start_ts),
        ("spec.pitrRestoredTs", spec.pitr_restored_ts),
    ):
        if misfit := _check_timestamp(name, text):
            yield misfit


def _check_replication(restore: Restore) -> Iterator[Problem]:
    spec, field = restore.spec, "spec.replicationConfig"
    config = spec.replication_config
    if config is None:
        return
    if not spec.is_replication:
        yield Problem(field, None, "needs spec.restoreMode pitr; set it, or remove the field")
        return
    yield from _check_name(restore.metadata.name, "", "-snapshot-restore")
    if spec.br is None:
        yield Problem("spec.br", None, f"is required with {field}; name the TidbCluster in spec.br.cluster")
    if not config.compact_backup_name:
        yield Problem(f"{field}.compactBackupName", None, "is required; name a CompactBackup of this namespace")
    if config.wait_timeout:
        try:
            duration.seconds(config.wait_timeout)
        except ValueError as error:
            yield Problem(f"{field}.waitTimeout", config.wait_timeout, str(error))


def _check_endpoint(log: StorageProvider, snapshot: StorageProvider) -> Iterator[Problem]:
    """BR has one endpoint: v1.6 lets it look for the snapshot at the log's."""
    if log.s3 is None or snapshot.s3 is None or not snapshot.s3.endpoint:
        return
    one, other = (
        s3storage_provider.endpoint.rpartition("://")[2].rstrip("/") for s3storage_provider in (log.s3, snapshot.s3)
    )
    if one != other:
        message = f"must equal spec.s3.endpoint, {log.s3.endpoint or 'none'}, since BR has one; copy the snapshot there"
        yield Problem("spec.pitrFullBackupStorageProvider.s3.endpoint", snapshot.s3.endpoint, message)


def _check_least(field: str, number: int, least: int) -> Iterator[Problem]:
    if number < least:
        yield Problem(field, number, f"must be at least {least}")
