"""`backup-manager compact`: tikv-ctl rewrites a part of a log backup for faster restores (backup.md 6, 7.10).

A second pod starts again at the beginning of the part.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from apis import tso
from apis.backup_defaulting import with_compact_defaults
from apis.compact_backups import SHARDED, CompactBackup, CompactSpec
from apis.times import stamp
from backup_manager.br_arguments import BR
from backup_manager.br_log import ErrorLines
from backup_manager.child_process import OnLine
from backup_manager.jobs import Job, job_for
from backup_manager.outcomes import JobFailed
from backup_manager.outside import Outside
from backup_manager.places import UnknownStorage, storage_flags
from backup_manager.tikv_ctl_log import CompactionProgress, read_line
from backup_manager.tools import ToolFailed, launch
from kube.objects import Json
from kube.resources import COMPACT_BACKUPS

_log = structlog.get_logger(__name__)

TIKV_CTL = "/var/lib/kvctl-bin/tikv-ctl"
"""The path at which the init container installs it."""

_FAILED = "CompactFailed"
_EVERY = 3.0
"""Seconds between two writes of progress."""
_KEPT = 20
"""The maximum number of error lines in a message."""
_INDEX = "JOB_COMPLETION_INDEX"
"""The variable in which Kubernetes gives a pod its index, from 0 (CMP-9)."""
_STORAGE = "COMPACTED_STORAGE_TOKEN"
"""The name of the storage among the secrets to redact: Azure's address may contain a signature."""

RUNNING = "Running"
COMPLETE = "Complete"
FAILED = "Failed"
RETRY_FAILED = "RetryFailed"


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """The flags of `backup-manager compact` (backup.md 7.2)."""

    namespace: str
    name: str


def run_compact(options: CompactOptions, outside: Outside) -> None:
    """Compact and record the outcome.

    Raises JobFailed, Stopped, Unusable; RecordGone, ApiError, TransportError.
    """
    job = job_for(outside, COMPACT_BACKUPS, options.namespace, options.name)
    compact = with_compact_defaults(job.read(CompactBackup))
    if is_complete(job.record.read().get("status") or {}):
        _log.info("the compaction is complete already", name=options.name)
        return
    try:
        _compact(job, compact)
    except JobFailed as error:
        why, now = outside.secrets.cut_from(error.message), outside.clock.wall()
        if compact.spec.mode == SHARDED:
            index = outside.environ.get(_INDEX)
            job.record.change_status(lambda status: status | {"message": f"shard {index}: {why}"})
        else:
            job.record.change_status(lambda status: with_failure(status, why, now))
        raise


def _compact(job: Job, compact: CompactBackup) -> None:
    arguments, is_sharded = _arguments(compact, job.outside.environ.get(_INDEX, "")), compact.spec.mode == SHARDED
    job.record.change_status(with_shard_start if is_sharded else with_start)
    storage = _storage(compact, job.outside)
    # for the log, which shows the command line
    outside = replace(job.outside, environ={**job.outside.environ, _STORAGE: storage})
    run = _Run(job, outside, is_whole=not is_sharded)
    words = ["--log-level", "INFO", "--log-format", "json", "compact-log-backup", "--storage-base64", storage]
    _launched("tikv-ctl", [TIKV_CTL, *words, *arguments], outside, run.on_line, run.why)
    if run.aborted:
        raise JobFailed(_FAILED, f"the compaction was aborted: {run.aborted}")
    if not is_sharded:
        job.record.change_status(lambda status: with_end(status, run.input_until))


def _arguments(compact: CompactBackup, index: str) -> list[str]:
    """The arguments that select the part, and the shard of an index (CMP-10). Raises JobFailed."""
    spec = compact.spec
    found = [*_span(spec), "-N", str(spec.concurrency), *(["--name", spec.name] if spec.name else [])]
    return [*found, *_of_shard(spec, index)] if spec.mode == SHARDED else found


def _span(spec: CompactSpec) -> list[str]:
    is_open = spec.mode == SHARDED and not spec.end_ts  # tikv-ctl compacts up to the checkpoint
    try:
        start, end = tso.parse(spec.start_ts), tso.parse(spec.end_ts)
    except ValueError as error:
        raise JobFailed(_FAILED, f"spec.startTs, spec.endTs: {error}") from error
    if not is_open and (not end or end < start):
        raise JobFailed(_FAILED, f"spec.endTs: {spec.end_ts!r} must not be before spec.startTs, {spec.start_ts!r}")
    if spec.concurrency < 1:
        raise JobFailed(_FAILED, f"spec.concurrency: {spec.concurrency} must be at least 1")
    return ["--from", str(start), *([] if is_open else ["--until", str(end)])]


def _of_shard(spec: CompactSpec, index: str) -> list[str]:
    count = spec.shard_count or 0
    if not index.isdecimal() or int(index) >= count:
        raise JobFailed(_FAILED, f"{_INDEX}: {index!r} is no index of {count} shards; only the Job sets it")
    capacity = spec.physical_file_cache_capacity.strip() or "0"
    found = ["--cal-shift-ts", "--physical-file-cache-capacity", capacity, "--shard", f"{int(index) + 1}/{count}"]
    return [*found, "--minimal-compaction-size", "0"]


def _storage(compact: CompactBackup, outside: Outside) -> str:
    """The storage in tikv-ctl's form; credentials stay in the environment. Raises JobFailed, Stopped."""
    lines: list[str] = []
    errors = ErrorLines()

    def on_line(line: str, is_error_stream: bool) -> None:
        if is_error_stream:
            errors.add(outside.secrets.cut_from(line), is_error_stream=True)
        else:
            lines.append(line.strip())

    try:
        flags = storage_flags(compact.spec)
    except UnknownStorage as error:
        raise JobFailed(_FAILED, str(error)) from error
    _launched("BR", [BR, "operator", "base64ify", *flags], outside, on_line, lambda: str(errors))
    if not any(lines):
        raise JobFailed(_FAILED, f"{BR} operator base64ify has printed nothing; does this BR know it (spec.toolImage)?")
    return "".join(lines)


def _launched(title: str, command: Sequence[str], outside: Outside, on_line: OnLine, why: Callable[[], str]) -> None:
    try:
        launch(title, command, outside, on_line, why)
    except ToolFailed as error:
        raise JobFailed(_FAILED, str(error)) from error


class _Run:
    """The results in tikv-ctl's log."""

    def __init__(self, job: Job, outside: Outside, *, is_whole: bool) -> None:
        """`is_whole`: the progress covers all shards, so that it may be written."""
        self._is_whole = is_whole
        self.input_until = 0
        self.aborted = ""
        self._errors: deque[str] = deque(maxlen=_KEPT)
        self._record = job.record
        self._clock = outside.clock
        self._secrets = outside.secrets
        self._written = -_EVERY

    def on_line(self, line: str, is_error_stream: bool) -> None:
        """Process a line."""
        line = self._secrets.cut_from(line)
        _log.info("output", tool="tikv-ctl", line=line)
        if not is_error_stream:
            return
        found = read_line(line)
        self.input_until = max(self.input_until, found.input_until)
        self.aborted = found.aborted or self.aborted
        if found.error:
            self._errors.append(found.error)
        if found.progress is not None and self._is_whole:
            self._tell(found.progress)

    def why(self) -> str:
        """The reason of a failure."""
        return self.aborted or "\n".join(self._errors)

    def _tell(self, progress: CompactionProgress) -> None:
        now = self._clock.now()
        if now - self._written >= _EVERY:
            self._written = now
            self._record.try_status(lambda status: with_progress(status, progress))


def is_complete(status: Json) -> bool:
    """True if the compaction is complete."""
    return status.get("state") == COMPLETE


def with_start(status: Json) -> Json:
    """The status of a running compaction, without the message of an earlier try."""
    return {key: value for key, value in status.items() if key != "message"} | {"state": RUNNING}


def with_shard_start(status: Json) -> Json:
    """The status once a shard runs; messages about other shards stay, and the operator writes the end (CMP-13)."""
    return status if status.get("state") in (RUNNING, COMPLETE, FAILED) else with_start(status)


def with_progress(status: Json, progress: CompactionProgress) -> Json:
    """The status with the compaction's progress."""
    return status | {"progress": str(progress)}


def with_end(status: Json, until: int) -> Json:
    """The status of a complete compaction with its final TSO, which never decreases."""
    before = str(status.get("endTs") or "")
    reached = max(int(before) if before.isdecimal() else 0, until)
    return with_start(status) | {"state": COMPLETE} | ({"endTs": str(reached)} if reached else {})


def with_failure(status: Json, why: str, now: datetime) -> Json:
    """The status of a failed try, with the reason and a record for the retry."""
    records = list(status.get("backoffRetryStatus") or ())
    record = {"retryNum": len(records), "detectFailedAt": stamp(now), "retryReason": why}
    return status | {"state": RETRY_FAILED, "message": why, "backoffRetryStatus": [*records, record]}
