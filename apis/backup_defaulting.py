"""Defaults of a Backup or Restore, in memory only (defaults-and-validation.md 2.4, backup.md 3.1).

Most defaults are in the models, so that they apply even if the API server has filled in nothing, e.g. the defaults of
`backoffRetryPolicy`, without which nothing would be retried (3.7).
"""

from typing import TypeVar

from msgspec import structs

from apis.backup_schedules import BackupSchedule, BackupScheduleSpec
from apis.backup_shared import BRConfig, TiDBAccessConfig
from apis.backups import BackoffRetryPolicy, Backup, BackupSpec, CleanOption
from apis.compact_backups import CompactBackup, CompactSpec
from apis.restores import Restore

PORT = 4000
USER = "root"

_R = TypeVar("_R", Backup, Restore, CompactBackup)
_T = TypeVar("_T", BackupSpec, CompactSpec)


def with_backup_defaults(backup: Backup) -> Backup:
    """A Backup with every default in its spec; `backup` is unchanged."""
    spec, policy, usual = backup.spec, backup.spec.backoff_retry_policy, BackoffRetryPolicy()
    filled = structs.replace(
        spec,
        from_=_with_user(spec.from_),
        backup_mode=spec.backup_mode or "snapshot",
        backup_type=spec.backup_type or "full",
        clean_option=_clean_option(spec.clean_option or CleanOption()),
        backoff_retry_policy=structs.replace(
            policy,
            min_retry_duration=policy.min_retry_duration or usual.min_retry_duration,
            retry_timeout=policy.retry_timeout or usual.retry_timeout,
        ),
    )
    return _of_namespace(structs.replace(backup, spec=filled))


def with_restore_defaults(restore: Restore) -> Restore:
    """A Restore with every default in its spec; `restore` is unchanged."""
    spec = restore.spec
    filled = structs.replace(
        spec,
        to=_with_user(spec.to),
        restore_mode=spec.restore_mode or "snapshot",
        backup_type=spec.backup_type or "full",
    )
    return _of_namespace(structs.replace(restore, spec=filled))


def with_compact_defaults(compact: CompactBackup) -> CompactBackup:
    """A CompactBackup with every default in its spec; `compact` is unchanged."""
    return _of_namespace(compact)


def with_schedule_defaults(schedule: BackupSchedule) -> BackupSchedule:
    """A BackupSchedule whose templates inherit missing fields from its own spec, which v1.6 ignores (5)."""
    spec = schedule.spec
    log, compact = spec.log_backup_template, spec.compact_backup_template
    filled = structs.replace(
        spec,
        backup_template=_from_schedule(spec.backup_template, spec),
        log_backup_template=_from_schedule(log, spec) if log else None,
        compact_backup_template=_from_schedule(compact, spec) if compact else None,
    )
    return structs.replace(schedule, spec=filled)


def _from_schedule(template: _T, spec: BackupScheduleSpec) -> _T:
    if template.provider is None:
        template = structs.replace(template, **spec.providers)
    is_export = getattr(template, "from_", None) is not None
    return template if template.br is not None or is_export else structs.replace(template, br=spec.br)


def _of_namespace(resource: _R) -> _R:
    """The object with the namespace of its TidbCluster filled in, by default its own namespace."""
    br = resource.spec.br
    if br is None or br.cluster_namespace:
        return resource
    named: BRConfig = structs.replace(br, cluster_namespace=resource.metadata.namespace)
    return structs.replace(resource, spec=structs.replace(resource.spec, br=named))


def _with_user(access: TiDBAccessConfig | None) -> TiDBAccessConfig | None:
    if access is None:
        return None
    return structs.replace(access, port=access.port or PORT, user=access.user or USER)


def _clean_option(option: CleanOption) -> CleanOption:
    """Values of 0 or less count as absent."""
    return structs.replace(
        option,
        page_size=option.page_size if option.page_size > 0 else 10000,
        retry_count=option.retry_count if option.retry_count > 0 else 5,
        batch_concurrency=option.batch_concurrency if option.batch_concurrency > 0 else 10,
        routine_concurrency=option.routine_concurrency if option.routine_concurrency > 0 else 100,
        snapshots_delete_ratio=option.snapshots_delete_ratio if option.snapshots_delete_ratio > 0 else 1,
    )
