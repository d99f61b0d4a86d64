"""`backup-manager backup --mode=log`: a sub-command of a log backup (backup.md 7.5).

Conditions are about the sub-command, as in `apis.log_backups`; for a Backup that is being deleted, about the whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from apis import backup_conditions, backup_paths, log_backups
from apis.backup_defaulting import with_backup_defaults
from apis.backup_paths import is_at
from apis.backups import Backup
from apis.log_backups import COMMANDS, COMPLETE, FAILED, PAUSE, RESUME, RUNNING, START, STOP, TRUNCATE, LogCondition
from apis.times import stamp
from backup_manager import statuses
from backup_manager.backup_meta import NAME, Unreadable, read_log_meta
from backup_manager.br import run_br
from backup_manager.br_arguments import NoBR, log_arguments
from backup_manager.jobs import Job, job_for
from backup_manager.outcomes import JobFailed, Unusable
from backup_manager.outside import Outside
from backup_manager.places import UnknownStorage, backup_path
from backup_manager.storage.checks import require_free, require_usable
from backup_manager.storage.errors import StorageError
from backup_manager.storage.objects import Storage
from backup_manager.tools import ToolFailed
from kube.objects import Json
from kube.resources import BACKUPS

_log = structlog.get_logger(__name__)

Fields = Mapping[str, object]
"""Status fields by name."""

_NONE: Fields = {}
_PREPARE = "Prepare"
_REASONS = {
    START: "StartLogBackupFailed",
    STOP: "StopLogBackupFailed",
    PAUSE: "PauseLogBackupFailed",
    RESUME: "ResumeLogBackuFailed",
    TRUNCATE: "TruncateLogBackuFailed",
}
"""Reasons of failures; two are misspelt in v1.6, and users' alerts may depend on them."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The flags of `backup-manager backup --mode=log` (backup.md 7.2); timestamps as the user writes them."""

    namespace: str
    name: str
    command: str = START
    commit_ts: str = "0"
    truncate_until: str = "0"
    cluster_tls: bool = False


def run_log_backup(options: LogOptions, outside: Outside) -> None:
    """Run a sub-command through BR, and record its outcome.

    Raises JobFailed, Stopped, Unusable; RecordGone, ApiError, TransportError.
    """
    if options.command not in COMMANDS:
        raise Unusable(f"--subcommand={options.command}: must be one of {', '.join(COMMANDS)}")
    job = job_for(outside, BACKUPS, options.namespace, options.name)
    backup = with_backup_defaults(job.read(Backup))
    if backup.spec.br is None:
        raise Unusable(str(NoBR()))
    if options.command == START and backup.status.commit_ts:
        _log.info("the log backup has begun already", name=options.name)
        return
    command = _SubCommand(options, job, backup)
    try:
        command.carry_out()
    except JobFailed as error:
        command.say(FAILED, _NONE, error.reason, error.message)
        raise


@dataclass(frozen=True, slots=True)
class _SubCommand:
    options: LogOptions
    job: Job
    backup: Backup

    def say(self, kind: str, fields: Fields = _NONE, reason: str = "", message: str = "") -> None:
        """Write a condition with its fields. Raises RecordGone, ApiError, TransportError."""
        condition = LogCondition(self.options.command, kind, reason, self.job.outside.secrets.cut_from(message))
        self.job.record.change(lambda tree: self._reported(tree, condition, fields))

    def _reported(self, tree: Json, condition: LogCondition, fields: Fields) -> Json:
        before, now = tree.get("status") or {}, self.job.outside.clock.wall()
        if tree["metadata"].get("deletionTimestamp"):
            kind, command = condition.kind, condition.command
            texts = condition.reason, condition.message
            status = backup_conditions.with_condition(before, kind, now, *texts, command=command)
        else:
            status = log_backups.with_command(before, condition, now, fields)
        if (completed := status.get("timeCompleted")) != before.get("timeCompleted"):
            status = statuses.with_fields(status, {"timeCompleted": completed})
        return tree if status == before else tree | {"status": status}

    def carry_out(self) -> None:
        """Run it. Raises JobFailed, Stopped; RecordGone, ApiError, TransportError."""
        clock = self.job.outside.clock
        started = stamp(clock.wall())
        self.say(_PREPARE)
        if self.options.command == TRUNCATE:
            self._require_own()
        self.say(RUNNING, self._place())
        self._run()
        times = {"timeStarted": started, "timeCompleted": stamp(clock.wall())}
        self.say(COMPLETE, {**times, **self._result()})

    def _has_begun(self) -> bool:
        """True if an earlier pod found the place of the spec free, and recorded it."""
        return is_at(self.backup.status.backup_path, self.backup.spec)

    def _require_own(self) -> None:
        """Check that the log to truncate is this one, not one at a new place in the spec. Raises JobFailed."""
        path = self.backup.status.backup_path
        if path and not self._has_begun():
            message = (
                f"the log is in {path}, and the spec names {backup_paths.backup_path(self.backup.spec) or 'no place'}: "
                "nothing is truncated there; name the place of the log in the spec again"
            )
            raise JobFailed(_REASONS[TRUNCATE], message)

    def _place(self) -> Fields:
        """The place of the log; the first pod checks that it is usable and free."""
        if self.options.command != START:
            return {}
        storage = self.job.storage(self.backup.spec, "GetBackupRemotePathFailed")
        try:
            if not self._has_begun():
                self.job.patiently(lambda: _require_new(storage))
        except StorageError as error:
            raise JobFailed(_REASONS[START], str(error)) from error
        return {"backupPath": backup_path(self.backup.spec)}

    def _run(self) -> None:
        options, outside = self.options, self.job.outside
        try:
            arguments = log_arguments(
                self.backup, options.command, options.commit_ts, options.truncate_until, cluster_tls=options.cluster_tls
            )
            run_br(arguments, self.job.record, outside)
        except (ToolFailed, UnknownStorage, ValueError) as error:
            if self._was_starting():
                _log.warning("BR has begun this log backup in an earlier pod", cause=str(error))
                return
            raise JobFailed(_REASONS[options.command], str(error)) from error

    def _was_starting(self) -> bool:
        """True if an earlier pod had BR start the task, and was killed before it could record that: BR refuses to start
        twice.

        The operator checks in the cluster if the task exists.
        """
        if self.options.command != START or not self._has_begun():
            return False
        storage = self.job.storage(self.backup.spec, "GetLogBackupMetadataFailed")
        try:
            return bool(read_log_meta(storage.read(NAME)).start_version)
        except (StorageError, Unreadable):
            return False

    def _result(self) -> Fields:
        if self.options.command == TRUNCATE:
            return {"logSuccessTruncateUntil": self.options.truncate_until}
        if self.options.command != START:
            return {}
        reason = "GetLogBackupMetadataFailed"
        meta = self.job.log_meta(self.job.storage(self.backup.spec, reason), reason)
        return {"commitTs": str(meta.start_version)}


def _require_new(storage: Storage) -> None:
    require_usable(storage)
    require_free(storage)
