"""Metrics of single Backups, read from the cache at a scrape by the process that owns the Backup; v1.6 has none."""

from collections.abc import Iterable, Iterator

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from apis import log_backups, tso
from apis.backups import Backup
from apis.decoding import decode
from apis.log_backups import RESUME, START
from apis.problem import InvalidField
from controllers.job_owners import status
from kube.objects import Json, Object
from kube.reading import Lister
from ports.clock import Clock
from ports.fencing import FenceOf, is_open

log = structlog.get_logger(__name__)

_LABELS = ("namespace", "name")
_LAG = "tidb_operator_log_backup_checkpoint_lag_seconds"
_CLEAN_FAILED = "tidb_operator_backup_clean_failed"
_FAMILIES = {
    _LAG: "Seconds since the checkpoint of a log backup, up to which it has saved everything.",
    _CLEAN_FAILED: "1 for a deleted Backup whose files cannot be removed, or are needed by another object.",
}


class BackupMetrics(Collector):
    """The series of single Backups."""

    def __init__(self, registry: CollectorRegistry, backups: Lister, clock: Clock, fence_of: FenceOf) -> None:
        """Register with the registry; `fence_of` decides which Backups belong to this process."""
        self._backups, self._clock, self._fence_of = backups, clock, fence_of
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """All families, with the series of the Backups that belong to this process."""
        families = {name: GaugeMetricFamily(name, text, labels=_LABELS) for name, text in _FAMILIES.items()}
        for backup in (each for each in self._backups.list() if is_open(self._fence_of(each.key))):
            for name, value in self._samples(backup):
                families[name].add_metric([backup.metadata.namespace, backup.metadata.name], value)
        return families.values()

    def _samples(self, backup: Object) -> Iterator[tuple[str, float]]:
        body = backup.decode()
        now: Json = body.get("status") or {}
        if backup.metadata.deletion_timestamp:
            yield _CLEAN_FAILED, now.get("phase") == status.CLEAN_FAILED
            return
        if (since := _saved_until(body, now)) is not None:
            yield _LAG, max((self._clock.wall() - tso.time_of(since)).total_seconds(), 0.0)


def _saved_until(body: Json, now: Json) -> int | None:
    """The TSO up to which a log backup that should run has saved everything; None for other Backups."""
    try:
        spec = decode(body, Backup).spec
        if (
            spec.backup_mode != "log"
            or not now.get("commitTs")
            or log_backups.due_command(spec, now) not in (START, RESUME)
        ):
            return None
        return tso.parse(str(now.get("logCheckpointTs") or now["commitTs"]))
    except (InvalidField, ValueError):
        return None  # the spec is refused, or another client has spoilt the status
