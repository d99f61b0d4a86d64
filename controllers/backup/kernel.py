"""What a cluster itself says of its log backups: read from PD's etcd, at most once a minute each (backup.md 3.8)."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from apis.log_backups import LogCondition
from apis.problem import InvalidField
from controllers.cluster_etcd import EtcdOf
from controllers.memory import Memory
from dataplane.errors import DataPlaneError
from dataplane.log_backups import LogTask, read_log_task
from kube.errors import ApiError
from kube.objects import Object
from ports.clock import Clock
from ports.transport import TransportError

log = structlog.get_logger(__name__)

EVERY = 60.0
"""Seconds between two looks."""
AGAIN = 10.0
"""Seconds until a second look has to confirm what the first one found."""

ReadTask = Callable[[Object, str], LogTask]
"""The task of a name in a TidbCluster. Raises InvalidField, DataPlaneError, ApiError, TransportError."""


def task_reader(etcd_of: EtcdOf) -> ReadTask:
    """Reads tasks from the etcd in the PD of a cluster."""
    return lambda cluster, name: read_log_task(etcd_of(cluster), name)


@dataclass(slots=True)
class Watched:
    """What is remembered of one log backup.

    `next_look` is when it is looked at again, unless it stands otherwise than it did at the last look, `stood`.
    `suspected` is what the last look found, which the next one has to confirm.
    """

    next_look: float = 0.0
    stood: tuple[str, str] = ("", "")
    suspected: LogCondition | None = None


class Kernel:
    """Looks at tasks; remembers of each, by the key of its Backup, when and what it found."""

    def __init__(self, read: ReadTask, clock: Clock, watched: Memory[Watched]) -> None:
        self._read = read
        self._clock = clock
        self._watched = watched
        self.forget = watched.forget

    def watched(self, key: str) -> Watched:
        """What is remembered of a Backup."""
        return self._watched.of(key)

    def look(self, key: str, cluster: Object, name: str, stood: tuple[str, str]) -> LogTask | None:
        """The task as it is now, if it is time to look; None else, and when nobody answers."""
        watched, now = self.watched(key), self._clock.now()
        if now < watched.next_look and stood == watched.stood:
            return None
        watched.next_look, watched.stood = now + EVERY, stood
        return self.ask(cluster, name)

    def rest(self, key: str) -> float:
        """Seconds until the next look."""
        return max(self.watched(key).next_look - self._clock.now(), 0.1)

    def ask(self, cluster: Object, name: str) -> LogTask | None:
        """The task as it is now; None when nobody answers."""
        try:
            return self._read(cluster, name)
        except (InvalidField, DataPlaneError, ApiError, TransportError) as error:
            log.warning("the state of a log backup can't be read from PD", task=name, error=str(error))
            return None
