"""After a write, a cache may show the object as it was before (F6, EXP-3).

A reconcile that acted on the older one would decide again what it has decided already. So the version of the own last
write is kept for each key, and a cached object that is older is not acted on.

Where etcd is restored from a backup, versions go back, and what is older by its number may be all there is: a cache
that does not show the write for long is compared with a live read.
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
"""Seconds until the next try, a tenth of the wait so far; what the cache learns is an event, and comes sooner."""

_PATIENCE = 30.0
"""Seconds after which a live read tells whether there is anything newer to wait for."""


@dataclass(slots=True)
class OwnWrite:
    """The newest version of one object that this process wrote and has not seen since; 0 when there is none."""

    _uid: str = ""
    _version: int = 0
    _echo: str = ""
    _since: float | None = None
    """Since when a cache has been known not to show it, monotonic seconds."""

    def remember(self, written: Object, *, is_news: bool = True) -> None:
        """Note what a write answered, and whether what it wrote is news to the next reconcile."""
        self._echo = "" if is_news else written.metadata.resource_version
        if version := _number(written.metadata.resource_version):
            self._uid, self._version, self._since = written.metadata.uid, version, None

    def is_echo(self, seen: Object) -> bool:
        """Whether this is how our last write left the object, and no news."""
        return bool(self._echo) and seen.metadata.resource_version == self._echo

    def wait(self, cached: Object, clock: Clock, look: Callable[[], Object | None]) -> float:
        """Seconds for which nothing may be decided on the cached object; 0 when it may be now.

        `look` reads the object live. Raises RequeueError when it cannot.
        """
        if not self._is_older(cached):
            self._seen()
            return 0.0
        now = clock.now()
        self._since = now if self._since is None else self._since
        waited = now - self._since
        if waited >= _PATIENCE and _is_all_there_is(cached, look):
            _log.warning(
                "versions have gone back, as when etcd is restored from a backup; going on with what there is",
                version=cached.metadata.resource_version,
                written=str(self._version),
            )
            self._seen()
            return 0.0
        return min(max(waited / 10, _SOONEST), _LATEST)

    def _is_older(self, cached: Object) -> bool:
        """Whether the cached object is older than our last write to it; another UID is another object."""
        version = _number(cached.metadata.resource_version)
        return self._uid == cached.metadata.uid and 0 < version < self._version

    def _seen(self) -> None:
        self._version, self._since = 0, None


def _is_all_there_is(cached: Object, look: Callable[[], Object | None]) -> bool:
    try:
        live = look()
    except (ApiError, TransportError) as error:
        message = f"could not see whether the cache lags behind: {error}"
        raise RequeueError(type(error).__name__, message, untold=True) from error
    seen = cached.metadata
    return live is not None and (live.metadata.uid, live.metadata.resource_version) == (seen.uid, seen.resource_version)


def _number(version: str) -> int:
    """The version as a number; 0 when it is none, which compares with nothing."""
    return int(version) if version.isdecimal() else 0
