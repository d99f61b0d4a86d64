"""Rules of BackupSchedule (backup.md 5); the templates obey the rules of the objects that are created from them.

All problems are collected. The object has its defaults.
"""

from collections.abc import Iterable, Iterator

from msgspec import structs

from apis import cron, tso
from apis.backup_defaulting import with_backup_defaults, with_compact_defaults
from apis.backup_schedules import BackupSchedule, BackupScheduleSpec
from apis.backups import Backup, BackupSpec
from apis.compact_backups import SHARDED, CompactBackup, CompactSpec
from apis.problem import Problem
from apis.shared import Metadata
from apis.validation.backups import DOTTED, shard_suffix, validate_backup, validate_compact
from ports import duration

_LONGEST = {False: 36, True: 35}
"""Without and with compactions: the Jobs, `backup-<name>-<time>` and `compact-<name>-<time>`, are labels as well."""
_SIZE = "100Gi"


def validate_backup_schedule(schedule: BackupSchedule) -> list[Problem]:
    """Everything that is wrong with a BackupSchedule."""
    spec = schedule.spec
    return [
        *_check_name(schedule.metadata.name, spec.compact_backup_template),
        *_check_schedule(spec.schedule),
        *_check_duration("spec.maxReservedTime", spec.max_reserved_time),
        *_check_duration("spec.compactInterval", spec.compact_interval),
        *_check_snapshots(spec),
        *_check_log(spec),
        *_check_compactions(spec),
    ]


def _check_name(name: str, compactions: CompactSpec | None) -> Iterator[Problem]:
    longest = _LONGEST[compactions is not None]
    if compactions is not None and compactions.mode == SHARDED:
        longest -= len(shard_suffix(compactions))
        if "." in name:
            yield Problem("metadata.name", name, DOTTED)
    if len(name) > longest:
        message = f"is too long for the names of Jobs, which have a time besides; use at most {longest} characters"
        yield Problem("metadata.name", name, message)


def _check_schedule(text: str) -> Iterator[Problem]:
    try:
        cron.parse(text)
    except cron.BadSchedule as error:
        yield Problem("spec.schedule", text, str(error))


def _check_duration(field: str, text: str | None) -> Iterator[Problem]:
    if not text:
        return
    try:
        if duration.seconds(text) <= 0:
            yield Problem(field, text, "must be more than 0")
    except ValueError:
        yield Problem(field, text, "must be a duration such as 168h or 90m; for days, multiply by 24h")


def _check_snapshots(spec: BackupScheduleSpec) -> Iterator[Problem]:
    template = spec.backup_template
    if template.backup_mode == "log":
        message = "must be snapshot; move a log backup to spec.logBackupTemplate"
        yield Problem("spec.backupTemplate.backupMode", "log", message)
        return
    yield from _moved(_problems_of(template, spec.storage_size or _SIZE), "spec.backupTemplate")


def _check_log(spec: BackupScheduleSpec) -> Iterator[Problem]:
    template = spec.log_backup_template
    if template is None:
        return
    field = "spec.logBackupTemplate"
    if template.backup_mode != "log":
        yield Problem(f"{field}.backupMode", template.backup_mode, "must be log")
        return
    yield from _moved(_problems_of(template, ""), field)


def _check_compactions(spec: BackupScheduleSpec) -> Iterator[Problem]:
    template = spec.compact_backup_template
    if template is None:
        return
    field = "spec.compactBackupTemplate"
    if spec.log_backup_template is None:
        yield Problem(field, None, "has nothing to compact; add spec.logBackupTemplate, or remove it")
    if not spec.compact_interval:
        yield Problem("spec.compactInterval", None, f"is required with {field}; give a duration such as 24h")
    yield from _moved(_problems_of_compaction(template), field)
    try:
        tso.parse(spec.min_compact_start_ts or "")
    except ValueError:
        message = "must be a TSO, or a time such as 2024-05-01T10:00:00Z"
        yield Problem("spec.minCompactStartTs", spec.min_compact_start_ts, message)


def _problems_of(template: BackupSpec, size: str) -> list[Problem]:
    sized = structs.replace(template, storage_size=template.storage_size or size)
    return validate_backup(with_backup_defaults(Backup(metadata=_SHORT, spec=sized)))


def _problems_of_compaction(template: CompactSpec) -> list[Problem]:
    whole = structs.replace(template, start_ts="1", end_ts="1")
    return validate_compact(with_compact_defaults(CompactBackup(metadata=_SHORT, spec=whole)))


_SHORT = Metadata(name="a", namespace="a")
"""A placeholder for the names of created objects: the name of the schedule is checked separately."""


def _moved(problems: Iterable[Problem], field: str) -> Iterator[Problem]:
    """The problems of the objects created from a template, each at its field of the template."""
    for problem in problems:
        yield Problem(
            problem.field.replace("spec", field, 1), problem.value, problem.message.replace("spec.", f"{field}.")
        )
