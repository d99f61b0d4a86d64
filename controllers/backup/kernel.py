"""The tasks of log backups that a cluster records in PD's etcd, each read at most once a minute (backup.md 3.8)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import structlog

from apis.log_backups import LogCondition
from apis.problem import InvalidField
from controllers.cluster_etcd import EtcdOf
from controllers.memory import Memory
from dataplane.errors import DataPlaneError
from dataplane.etcd import EtcdClient
from dataplane.log_backups import LogTask, log_task_names, read_log_task
from kube.errors import ApiError
from kube.objects import Object
from member.actions import EndLogTask
from ports.clock import Clock
from ports.transport import TransportError

log = structlog.get_logger(__name__)

T = TypeVar("T")

_SILENCE = (InvalidField, DataPlaneError, ApiError, TransportError)
"""Errors after which the task in the cluster is unknown."""

EVERY = 60.0
"""Seconds between two reads of a task."""
AGAIN = 10.0
"""Seconds until a second read must confirm the finding of the first."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The answer in place of a task that could not be read: the cause."""

    cause: str


@dataclass(slots=True)
class Watched:
    """The memory of one log backup.

    `next_look` is the time of the next read of its task; it is read earlier if its state differs from `stood`, the
    state at the last read. `suspected` is the finding of the last read, which the next one must confirm.
    `unreadable_since` is the wall time since which no read has succeeded, None if the last one has; `next_report` is
    the monotonic time before which the condition about that is not written again.
    """

    next_look: float = 0.0
    stood: tuple[str, str] = ("", "")
    suspected: LogCondition | None = None
    unreadable_since: datetime | None = None
    next_report: float = 0.0


class Kernel:
    """Reads and ends tasks; remembers the time and finding of each read by the key of the Backup."""

    def __init__(self, etcd_of: EtcdOf, clock: Clock, watched: Memory[Watched]) -> None:
        self._etcd_of = etcd_of
        self._clock = clock
        self._watched = watched
        self.forget = watched.forget

    def watched(self, key: str) -> Watched:
        """The memory of a Backup."""
        return self._watched.of(key)

    def look(self, key: str, cluster: Object, name: str, stood: tuple[str, str]) -> LogTask | Unreadable | None:
        """The present task; None if it is not time to read it."""
        watched, now = self.watched(key), self._clock.now()
        if now < watched.next_look and stood == watched.stood:
            return None
        watched.next_look, watched.stood = now + EVERY, stood
        return self._query(cluster, lambda etcd: read_log_task(etcd, name))

    def rest(self, key: str) -> float:
        """The seconds until the next read."""
        return max(self.watched(key).next_look - self._clock.now(), 0.1)

    def ask(self, cluster: Object, name: str) -> LogTask | None:
        """The present task; None if PD does not answer."""
        task = self._query(cluster, lambda etcd: read_log_task(etcd, name))
        return None if isinstance(task, Unreadable) else task

    def names(self, cluster: Object) -> list[str] | None:
        """The names of all present tasks of a cluster; None if PD does not answer."""
        names = self._query(cluster, log_task_names)
        return None if isinstance(names, Unreadable) else names

    async def end(self, cluster: Object, name: str) -> bool:
        """End the task of a name; return True if PD has confirmed it. Raises LeaseExpired."""
        try:
            await EndLogTask(self._etcd_of(cluster), name)
        except _SILENCE as error:
            _log_silence(cluster, error)
            return False
        return True

    def _query(self, cluster: Object, question: Callable[[EtcdClient], T]) -> T | Unreadable:
        try:
            return question(self._etcd_of(cluster))
        except _SILENCE as error:
            _log_silence(cluster, error)
            return Unreadable(str(error))


def _log_silence(cluster: Object, error: Exception) -> None:
    log.warning("PD does not answer for a log backup", cluster=cluster.key, error=str(error))
