"""Compactions of the log, one after the other (backup.md 5.4).

…──┤ lastCompactProgress ├── the next: an interval, or three to catch up ──┤      ├── the log's checkpoint
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apis import tso
from apis.times import parse_time, stamp
from controllers.backup_schedule import log_backup
from controllers.backup_schedule.made import timestamp
from controllers.backup_schedule.scheduling import Scheduling
from kube.objects import Json, Object
from kube.resources import COMPACT_BACKUPS
from member.backups.schedules import scheduled_compaction
from ports import duration

_FIELDS = ("metadata.name", "spec.compactBackupTemplate", "spec.compactInterval", "spec.minCompactStartTs")
_ENDED = ("Complete", "Failed")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_CATCHING_UP = 3
"""The maximum number of intervals that one compaction covers when the schedule is behind."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the log."""

    start: datetime
    end: datetime


async def sync(schedule: Scheduling) -> None:
    """Note the progress of the last compaction, and create the next. Raises ApiError, TransportError."""
    ctx = schedule.ctx
    spec = ctx.model.spec
    template, interval = spec.compact_backup_template, spec.compact_interval
    log_start = schedule.time("logBackupStartTs")
    if template is None or not interval or log_start is None or spec.pause or schedule.blocks(*_FIELDS):
        return
    if not await _catch_up_with_last(schedule, log_start):
        return
    every = timedelta(seconds=duration.seconds(interval))
    span = next_span(ctx.status, every, _checkpoint(schedule), spec.min_compact_start_ts or "", ctx.now)
    if span is None or await _adopted(schedule, span):
        return
    made = scheduled_compaction(ctx.model, template, log_start, span.start, span.end, ctx.now)
    await schedule.create(COMPACT_BACKUPS, made)
    await schedule.note(lastCompact=made["metadata"]["name"], lastCompactExecutionTs=stamp(ctx.now))


def next_span(status: Json, every: timedelta, checkpoint: int, least: str, now: datetime) -> Span | None:
    """The part of the log to compact now; None if none is due."""
    log_start, last, progress = (
        parse_time(str(status.get(name) or ""))
        for name in ("logBackupStartTs", "lastCompactExecutionTs", "lastCompactProgress")
    )
    if log_start is None or not checkpoint:
        return None
    saved = tso.time_of(checkpoint)
    # the progress may belong to an earlier log
    start = max(progress or log_start, log_start, tso.time_of(tso.parse(least)))
    # times in a CompactBackup and in the status have no fractions of seconds
    end = min(saved, start + _CATCHING_UP * every) if saved - start >= _CATCHING_UP * every else saved
    end = end.replace(microsecond=0)
    if start >= end or end - log_start < every or (last is not None and timedelta(0) <= now - last < every):
        return None
    return Span(start, end)


def _checkpoint(schedule: Scheduling) -> int:
    there = log_backup.cached(schedule)
    backup = log_backup.model_of(there) if there else None
    return log_backup.checkpoint(schedule, backup) if backup else 0


async def _catch_up_with_last(schedule: Scheduling, log_start: datetime) -> bool:
    """Note the progress of the last compaction; return True if another one may begin."""
    ctx = schedule.ctx
    last = schedule.children.compactions.get(ctx.namespace, str(ctx.status.get("lastCompact") or ""))
    if last is None:
        name = ctx.status.get("lastCompact")
        last = ctx.runtime.client.find(COMPACT_BACKUPS, name, ctx.namespace) if name else None
    if last is None or not ctx.controls(last):
        return True
    reached = _reached(last)
    if reached is None:
        return False
    time = schedule.time("lastCompactProgress")
    if reached >= log_start and (time is None or reached > time):
        await schedule.note(lastCompactProgress=stamp(reached))
    return True


def _reached(compaction: Object) -> datetime | None:
    """The time up to which a compaction has compacted the log; None while it runs.

    A Complete compaction counts up to its end, even if the log had nothing, or less, in that part.
    """
    body = compaction.decode()
    status, spec = body.get("status") or {}, body.get("spec") or {}
    texts = {"Complete": (status.get("endTs"), spec.get("endTs")), "Failed": (spec.get("startTs"),)}
    if status.get("state") not in texts:
        return None
    return tso.time_of(max(timestamp(str(text or "")) for text in texts[status["state"]]))


async def _adopted(schedule: Scheduling, span: Span) -> bool:
    """True if a compaction exists that the status lacks, because the process crashed; it is added to the status."""
    ctx = schedule.ctx
    found = ctx.runtime.client.list_page(COMPACT_BACKUPS, ctx.namespace).items
    unknown = [obj for obj in found if ctx.controls(obj) and obj.metadata.name != ctx.status.get("lastCompact")]
    last = schedule.time("lastCompactExecutionTs")
    same = max((obj for obj in unknown if _stands_for(obj, span, last)), key=_created, default=None)
    if same is None:
        return False
    await schedule.note(lastCompact=same.metadata.name, lastCompactExecutionTs=stamp(_created(same)))
    return True


def _stands_for(compaction: Object, span: Span, last: datetime | None) -> bool:
    """True if a compaction runs, or has compacted the same span since the last one in the status."""
    body = compaction.decode()
    state, start = (body.get("status") or {}).get("state"), (body.get("spec") or {}).get("startTs")
    if state not in _ENDED:
        return True
    is_newer = last is None or _created(compaction) > last
    return state != "Failed" and start == stamp(span.start) and is_newer


def _created(compaction: Object) -> datetime:
    return parse_time(compaction.metadata.creation_timestamp or "") or _NEVER
