"""The check that the log has the span that a CompactBackup compacts (backup.md 6). Pure.

tikv-ctl compacts what it finds and reports success, also for a part of the log that is not written yet.
"""

from collections.abc import Sequence

from apis import log_backups, tso
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.problem import Problem
from controllers.backup.chains import bounds, decisive, logs_at, shown, until_reached
from member.outcome import Wait


def obstacle(compact: CompactBackup, backups: Sequence[Backup]) -> Problem | Wait | None:
    """The problem if the log will never have any part of the span, or the wait until it has the whole span.

    None if a log has the span, as far as its Backup reports, or the Backup that wrote it is unknown. The spec must be
    valid, and all objects must have their defaults.
    """
    logs = (each for each in logs_at(backups, compact.spec) if bounds(each)[0])
    return decisive([_missing(compact, each) for each in logs])


def _missing(compact: CompactBackup, log: Backup) -> Problem | Wait | None:
    spec, phase, of = compact.spec, log.status.phase, f"the log of Backup {log.metadata.namespace}/{log.metadata.name}"
    start, end = tso.parse(spec.start_ts), tso.parse(spec.end_ts)
    begins, reached = bounds(log)
    if end < begins:
        return Problem("spec.endTs", spec.end_ts, f"is before {of} begins, at {shown(begins)}; use a later one")
    if phase == log_backups.STOPPED:
        if start <= reached:
            return None
        return Problem("spec.startTs", spec.start_ts, f"is after {of} ends, at {shown(reached)}; use an earlier one")
    return None if end <= reached else until_reached(log, "spec.endTs", end)
