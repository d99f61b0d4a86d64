"""The objects of a BackupSchedule: Backups, its log backup, compactions of the log (backup.md 5.2, 5.4). Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeVar
from zlib import crc32

from msgspec import structs

from apis.backup_paths import backup_path, joined
from apis.backup_schedules import BackupSchedule
from apis.backups import BackupSpec
from apis.compact_backups import CompactSpec
from apis.decoding import encode
from apis.shared import Json, Model
from apis.times import stamp
from member.backups import naming
from member.backups.pods import API_VERSION
from member.labels import INSTANCE, MANAGED_BY, NAME

_FAMILY = "backup-schedule"
_PD_PORT = 2379
_EXPORT_SIZE = "100Gi"

_T = TypeVar("_T", BackupSpec, CompactSpec)


def scheduled_backup(schedule: BackupSchedule, due: datetime, others: Iterable[BackupSchedule] = ()) -> Json:
    """The Backup for a due time; the prefix of its files contains this time.

    If one of the `others` has backups of the same cluster at the same place, which may be due at the same time, the
    prefix also contains the name of the schedule.
    """
    spec, meta = schedule.spec, schedule.metadata
    made = _with_pull_secrets(spec.backup_template, schedule)
    if made.br is None:
        made = structs.replace(
            made,
            storage_class_name=made.storage_class_name or spec.storage_class_name,
            volume_attributes_class_name=made.volume_attributes_class_name or spec.volume_attributes_class_name,
            storage_size=made.storage_size or spec.storage_size or _EXPORT_SIZE,
        )
    else:
        place = _place(schedule)
        whose = f"-{meta.name}" if any(_place(each) == place for each in others) else ""
        made = below(made, f"{_host(schedule)}-{_PD_PORT}-{naming.time_in_name(due)}{whose}")
    return _owned(schedule, "Backup", naming.scheduled_name(meta.name, due), made)


def _host(schedule: BackupSchedule) -> str:
    """The cluster that is backed up, in the format of prefixes; empty for exports."""
    br = schedule.spec.backup_template.br
    return f"{br.cluster}-pd.{br.cluster_namespace or schedule.metadata.namespace}" if br else ""


def _place(schedule: BackupSchedule) -> tuple[str, str]:
    return _host(schedule), backup_path(schedule.spec.backup_template)


def log_begins(schedule: BackupSchedule, now: datetime, others: Iterable[BackupSchedule]) -> datetime:
    """The start of a schedule's log, which names its directory: now, or less than a minute ago.

    If some of the `others` use the same place, each schedule uses another second of the minute, even if they start at
    once and do not see each other yet.
    """
    place, meta = _log_place(schedule), schedule.metadata
    beside = [each for each in others if _log_place(each) == place]
    if not beside:
        return now
    taken = {str(each.status.log_backup_start_ts or "") for each in beside}
    own = crc32(f"{meta.namespace}/{meta.name}".encode())
    begins = now - timedelta(seconds=(int(now.timestamp()) - own) % 60)
    while stamp(begins) in taken:
        begins -= timedelta(minutes=1)
    return begins


def _log_place(schedule: BackupSchedule) -> str | None:
    template = schedule.spec.log_backup_template
    return backup_path(template) if template else None


def scheduled_log(schedule: BackupSchedule, template: BackupSpec, begins: datetime) -> Json:
    """The log backup that starts at `begins`."""
    made = below(_with_pull_secrets(template, schedule), _log_directory(begins))
    return _owned(schedule, "Backup", naming.scheduled_log_name(schedule.metadata.name), made)


def scheduled_compaction(  # noqa: PLR0917  (what a compaction is made of)
    schedule: BackupSchedule, template: CompactSpec, log_start: datetime, start: datetime, end: datetime, now: datetime
) -> Json:
    """The compaction of a part of the log that started at `log_start`."""
    made = below(_with_pull_secrets(template, schedule), _log_directory(log_start))
    made = structs.replace(made, start_ts=stamp(start), end_ts=stamp(end))
    return _owned(schedule, "CompactBackup", naming.scheduled_compaction_name(schedule.metadata.name, now), made)


def log_start_of(log: BackupSpec) -> datetime | None:
    """The start of a schedule's log backup, from its prefix."""
    provider = log.provider
    directory = provider.prefix.rpartition("/")[2] if provider else ""
    return naming.time_of_name(directory.removeprefix("log-"))


def below(spec: _T, directory: str) -> _T:
    """The spec with another directory appended to the prefix of its storage."""
    moved = {
        name: structs.replace(each, prefix=joined(each.prefix, directory)) for name, each in spec.providers.items()
    }
    return structs.replace(spec, **moved)


def _log_directory(start: datetime) -> str:
    return f"log-{naming.time_in_name(start)}"


def _with_pull_secrets(template: _T, schedule: BackupSchedule) -> _T:
    secrets = schedule.spec.image_pull_secrets
    return structs.replace(template, image_pull_secrets=secrets) if secrets else template


def _owned(schedule: BackupSchedule, kind: str, name: str, spec: Model) -> Json:
    meta = schedule.metadata
    own = {
        NAME: _FAMILY,
        MANAGED_BY: f"{_FAMILY}-operator",
        INSTANCE: meta.name,
        naming.SCHEDULE_LABEL: meta.name,
    }
    metadata = naming.owned(meta, API_VERSION, schedule.kind, name, {**meta.labels, **own})
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": encode(spec)}
