"""The retention of a schedule's backups (backup.md 5.3). Pure.

Good, doubtful and failed backups are counted separately; doubtful ones are complete, but a check of their files found
mistakes. In v1.6 failed backups displace good ones. The last good backup is always kept.

The age of good backups is measured from the newest saved data, not only from the clock. A clock that was set forward,
or a cluster whose backups have stopped, therefore costs no backup. Failed backups have nothing to restore and expire
by the clock; otherwise they would accumulate until one succeeds.

Volume snapshots of v1.6 are neither counted nor removed: this operator cannot check, repeat or delete them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apis import tso
from controllers.backup_schedule.made import Made


@dataclass(frozen=True, slots=True)
class Log:
    """The log backup: the TSOs at which it starts and up to which it is saved."""

    start: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Expired:
    """The expired backups, and the TSO before which the log is not needed; 0 if all of it is."""

    backups: Sequence[Made] = ()
    log_until: int = 0


def by_number(backups: Sequence[Made], most: int, log: Log | None) -> Expired:
    """The good, doubtful and failed backups that exceed `most`, at least 1, of each group; the newest are kept.

    The newest base of the log is also kept: otherwise a log whose checkpoint is behind could not be restored.
    """
    good, doubtful, failed = _sorted(backups)
    base = _base(good, log)
    old = [backup for backup in good[:-most] if backup is not base]
    return Expired([*old, *doubtful[:-most], *failed[:-most]])


def by_age(backups: Sequence[Made], reserved: timedelta, now: datetime, log: Log | None) -> Expired:
    """The backups whose data are older than `reserved`, except the base of the moments that must stay restorable."""
    good, doubtful, failed = _sorted(backups)
    newest = max((*(backup.ts for backup in good), log.checkpoint if log else 0), default=0)
    limit = earlier(min(newest, tso.of_time(now)) if newest else tso.of_time(now), reserved)
    old = [backup for backup in doubtful[:-1] if tso.of_time(backup.created) < limit]
    old += [backup for backup in failed if tso.of_time(backup.created) < earlier(tso.of_time(now), reserved)]
    leading = [backup for backup in good if backup.ts <= limit]
    if log is None:
        return Expired([*(backup for backup in good[:-1] if backup.ts < limit), *old])
    if not leading:
        return Expired(old)
    # the base of moments right after the limit, or the last one that the checkpoint of the log has reached
    base = _base(leading, log)
    return Expired(
        [*(backup for backup in leading[:-1] if backup is not base), *old], base.ts if base is leading[-1] else 0
    )


def _base(good: Sequence[Made], log: Log | None) -> Made | None:
    """The newest backup that is a base of the log; None if there is none."""
    full = [backup for backup in good if not backup.is_incremental]
    reached = [backup for backup in full if log is not None and log.start <= backup.ts <= log.checkpoint]
    return reached[-1] if reached else None


def _sorted(backups: Sequence[Made]) -> tuple[list[Made], list[Made], list[Made]]:
    """The good backups sorted by the time of their data, the doubtful and the failed ones by their creation."""
    snapshots = sorted(
        (backup for backup in backups if not (backup.is_log or backup.is_volume or backup.is_being_deleted)),
        key=lambda each: each.created,
    )
    good = sorted((_dated(snapshot) for snapshot in snapshots if snapshot.is_good), key=lambda each: each.ts)
    doubtful = [snapshot for snapshot in snapshots if snapshot.is_complete and not snapshot.is_good]
    failed = [snapshot for snapshot in snapshots if snapshot.end and not snapshot.is_complete]
    return good, doubtful, failed


def _dated(backup: Made) -> Made:
    """The backup, with the TSO of its creation if its data have none, as in an export."""
    return backup if backup.ts else replace(backup, ts=tso.of_time(backup.created))


def earlier(time: int, by: timedelta) -> int:
    """The TSO `by` before `time`; at least 0."""
    return max(time - (by // timedelta(milliseconds=1) << tso.LOGICAL_BITS), 0)
