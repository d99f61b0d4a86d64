"""Metrics of single schedules, read from the cache at a scrape by the process that owns the schedule; v1.6 has none."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from apis import cron
from apis.times import parse_time
from controllers.backup_schedule.conditions import ACTIVE
from controllers.backup_schedule.made import Made, facts_of
from controllers.backup_schedule.scheduling import Children
from kube.objects import Json, Object, condition_of
from kube.reading import Lister
from ports.clock import Clock
from ports.fencing import FenceOf, is_open

_LABELS = ("namespace", "name")
_PREFIX = "tidb_operator_backup_schedule_"
_FAMILIES = {
    "overdue": ((), "Due times since the last good backup, at most 100; 0 while the schedule pauses."),
    "last_complete_timestamp_seconds": ((), "When the last good backup was complete."),
    "active": (("reason",), "1 while backups are made, else 0; the reason is the condition Active's."),
}
_MOST = 100


class ScheduleMetrics(Collector):
    """The series of single BackupSchedules."""

    def __init__(  # noqa: PLR0917  (what is read, and who reads)
        self,
        registry: CollectorRegistry,
        schedules: Lister,
        children: Children,
        clock: Clock,
        fence_of: FenceOf,
        time_zone: str,
    ) -> None:
        """Register; `fence_of` decides which schedules belong to this process, whose time zone is `time_zone`."""
        self._schedules, self._children, self._clock, self._fence_of = schedules, children, clock, fence_of
        self._time_zone = time_zone
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """All families, with the series of the schedules that belong to this process."""
        families = {
            name: GaugeMetricFamily(_PREFIX + name, text, labels=(*_LABELS, *labels))
            for name, (labels, text) in _FAMILIES.items()
        }
        for schedule in (each for each in self._schedules.list() if is_open(self._fence_of(each.key))):
            meta = schedule.metadata
            for name, labels, value in self._samples(schedule):
                families[name].add_metric([meta.namespace, meta.name, *labels], value)
        return families.values()

    def _samples(self, schedule: Object) -> Iterator[tuple[str, tuple[str, ...], float]]:
        body = schedule.decode()
        active = condition_of(_conditions(body), ACTIVE)
        if active:
            yield "active", (str(active.get("reason") or ""),), active.get("status") == "True"
        good = self._last_good(schedule)
        if good is not None and (completed := parse_time(good.completed)):
            yield "last_complete_timestamp_seconds", (), completed.timestamp()
        created = parse_time(schedule.metadata.creation_timestamp or "")
        if created is not None:
            yield "overdue", (), self._overdue(body.get("spec") or {}, created, good.created if good else created)

    def _last_good(self, schedule: Object) -> Made | None:
        backups = (facts_of(obj) for obj in self._children.backups.list(schedule.metadata.namespace))
        mine = [backup for backup in backups if backup.owner == schedule.metadata.uid and backup.is_good]
        return max(mine, key=lambda each: each.created, default=None)

    def _overdue(self, spec: Json, created: datetime, since: datetime) -> float:
        """The number of backups due after `since`; 0 for an invalid schedule, whose condition reports that."""
        if spec.get("pause"):
            return 0
        try:
            times = cron.parse(str(spec.get("schedule") or ""), created, self._time_zone).after(since)
        except cron.BadSchedule:
            return 0
        now = self._clock.wall()
        return sum(time <= now for time in islice(times, _MOST))


def _conditions(body: Json) -> Iterable[Json]:
    found: Iterable[Json] = (body.get("status") or {}).get("conditions") or ()
    return found
