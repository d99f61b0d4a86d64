"""Detection of a cache that does not yet show the operator's own last write (F6, EXP-3).

A reconcile of an outdated object would repeat decisions that are already carried out. For each key the operator keeps
the version of its last write, and does not reconcile a cached object that is older.

After a restore of etcd from a backup, versions go backwards, and no newer object may ever arrive. If the cache does not
show the write for long, the operator compares it with a live read.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controllers.errors import RequeueError
from kube.errors import ApiError
from kube.objects import Object
from ports.clock import Clock
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

_SOONEST, _LATEST = 0.1, 30.0
"""Limits in seconds of the delay before a retry, which is a tenth of the wait so far. An event comes sooner."""

_PATIENCE = 30.0
"""Seconds after which a live read decides if there is a newer object to wait for."""


@dataclass(slots=True)
class OwnWrite:
    """The newest version of an object that this process wrote and has not seen in the cache; 0 if there is none.

    Without it two minutes of a silent watch cost 40 requests to servers, not 4 (bench/memories.json).
    """

    _uid: str = ""
    _version: int = 0
    _echo: str = ""
    _since: float | None = None
    """The time since which the cache has been known not to show it, in monotonic seconds."""

    def remember(self, written: Object, *, is_news: bool = True) -> None:
        """Note the object that a write returned. `is_news` is False if the next reconcile need not react to it."""
        self._echo = "" if is_news else written.metadata.resource_version
        if version := _number(written.metadata.resource_version):
            self._uid, self._version, self._since = written.metadata.uid, version, None

    def is_echo(self, seen: Object) -> bool:
        """True if the object is unchanged since this process's last write, and that write was no news.

        In a rehearsed roll this saves 57 of 197 requests to servers; where keys rest, nearly nothing.
        """
        return bool(self._echo) and seen.metadata.resource_version == self._echo

    def wait(self, cached: Object, clock: Clock, look: Callable[[], Object | None]) -> float:
        """The seconds to wait before the next try; 0 if the cached object is new enough.

        `look` reads the object live. Raises RequeueError if that fails.
        """
        if not self._is_older(cached):
            self._forget()
            return 0.0
        now = clock.now()
        self._since = now if self._since is None else self._since
        waited = now - self._since
        if waited >= _PATIENCE and _is_current(cached, look):
            _log.warning(
                "versions have gone back, as when etcd is restored from a backup; continuing with the older versions",
                version=cached.metadata.resource_version,
                written=str(self._version),
            )
            self._forget()
            return 0.0
        return min(max(waited / 10, _SOONEST), _LATEST)

    def _is_older(self, cached: Object) -> bool:
        """True if the cached object is older than this process's last write to it. Another UID is another object."""
        version = _number(cached.metadata.resource_version)
        return self._uid == cached.metadata.uid and 0 < version < self._version

    def _forget(self) -> None:
        self._version, self._since = 0, None


def _is_current(cached: Object, look: Callable[[], Object | None]) -> bool:
    try:
        live = look()
    except (ApiError, TransportError) as error:
        message = f"could not see whether the cache lags behind: {error}"
        raise RequeueError(type(error).__name__, message, untold=True) from error
    seen = cached.metadata
    return live is not None and (live.metadata.uid, live.metadata.resource_version) == (seen.uid, seen.resource_version)


def _number(version: str) -> int:
    """The version as a number; 0, which is never compared, if it is not one."""
    return int(version) if version.isdecimal() else 0
