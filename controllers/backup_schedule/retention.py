"""Which backups of a schedule are kept (backup.md 5.3). Pure.

Good backups alone count, failed ones among themselves, and so do those that are complete while their files were not
found right: in v1.6 failed ones push good ones out, and are kept in their place. The last good one always stays.

How old one is follows from the newest data that are saved, not from the clock alone: one that was put forward, or a
cluster of which nothing is saved any more, costs none. Failed ones hold nothing that could be restored: they go by the
clock, or they would heap up for as long as none succeeds.

Snapshots of volumes, which v1.6 has made, are neither counted nor removed: nobody can look at them here, make another
one, or delete what they consist of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apis import tso
from controllers.backup_schedule.made import Made


@dataclass(frozen=True, slots=True)
class Log:
    """The log backup: from which TSO on there is one, and up to which it is saved."""

    start: int
    checkpoint: int


@dataclass(frozen=True, slots=True)
class Expired:
    """Backups that are not kept, the oldest first, and up to which TSO the log is not needed; 0: all of it is."""

    backups: Sequence[Made] = ()
    log_until: int = 0


def by_number(backups: Sequence[Made], most: int, log: Log | None) -> Expired:
    """All but the newest of good, of doubtful and of failed ones, `most` of each, which is at least one.

    The newest that the log reaches stays besides, or nothing of a log that is behind could be restored.
    """
    good, doubtful, failed = _sorted(backups)
    base = _base(good, log)
    old = [each for each in good[:-most] if each is not base]
    return Expired([*old, *doubtful[:-most], *failed[:-most]])


def by_age(backups: Sequence[Made], reserved: timedelta, now: datetime, log: Log | None) -> Expired:
    """All whose data are older than `reserved`, and are no base of points in time that are to be restored."""
    good, doubtful, failed = _sorted(backups)
    newest = max((*(each.ts for each in good), log.checkpoint if log else 0), default=0)
    limit = earlier(min(newest, tso.of_time(now)) if newest else tso.of_time(now), reserved)
    old = [each for each in doubtful[:-1] if tso.of_time(each.created) < limit]
    old += [each for each in failed if tso.of_time(each.created) < earlier(tso.of_time(now), reserved)]
    leading = [each for each in good if each.ts <= limit]
    if log is None:
        return Expired([*(each for each in good[:-1] if each.ts < limit), *old])
    if not leading:
        return Expired(old)
    # what a point in time right after the limit is restored from, or the last one that a log which is behind reaches
    base = _base(leading, log)
    return Expired([*(each for each in leading[:-1] if each is not base), *old], base.ts if base is leading[-1] else 0)


def _base(good: Sequence[Made], log: Log | None) -> Made | None:
    """The newest that the log goes on from; None when it goes on from none of them."""
    full = [each for each in good if not each.is_incremental]
    reached = [each for each in full if log is not None and log.start <= each.ts <= log.checkpoint]
    return reached[-1] if reached else None


def _sorted(backups: Sequence[Made]) -> tuple[list[Made], list[Made], list[Made]]:
    """Good ones by the time of their data, doubtful and failed ones by that of their making."""
    snapshots = sorted(
        (each for each in backups if not (each.is_log or each.is_volume or each.is_going)),
        key=lambda each: each.created,
    )
    good = sorted((_dated(each) for each in snapshots if each.is_good), key=lambda each: each.ts)
    doubtful = [each for each in snapshots if each.is_complete and not each.is_good]
    failed = [each for each in snapshots if each.end and not each.is_complete]
    return good, doubtful, failed


def _dated(backup: Made) -> Made:
    """One whose data have no TSO, as those of an export, is as old as it is itself."""
    return backup if backup.ts else replace(backup, ts=tso.of_time(backup.created))


def earlier(time: int, by: timedelta) -> int:
    """A TSO that is so much before another one, or the first of all."""
    return max(time - (by // timedelta(milliseconds=1) << tso.LOGICAL_BITS), 0)
