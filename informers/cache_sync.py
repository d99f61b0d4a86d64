"""Waiting until caches show what the server has (informers-workqueue.md INF-40, CW-9)."""

import contextlib
import threading
from collections.abc import Mapping
from typing import Protocol

import structlog

from ports.clock import Clock
from ports.latch import Latch
from ports.stopping import Stop

log = structlog.get_logger(__name__)

SYNC_TIMEOUT = 120.0
"""Seconds for which a process waits for its caches at the start (CW-9)."""


class CacheSyncTimeout(TimeoutError):
    """Raised when caches did not sync in time; `missing` names them, sorted."""

    def __init__(self, missing: list[str], seconds: float) -> None:
        super().__init__(f"not synced after {seconds:g} s: {', '.join(missing)}")
        self.missing = missing


class Syncing(Protocol):
    """An informer, or the registration of a handler."""

    @property
    def synced(self) -> Latch:
        """Set when it has synced."""


def wait_for_cache_sync(stop: Stop, clock: Clock, /, timeout: float = SYNC_TIMEOUT, **named: Syncing) -> bool:
    """Wait until all of `named` have synced: True if they have, False if `stop` was set first.

    Raises CacheSyncTimeout with the names that are missing after `timeout` seconds.
    """
    log.info("waiting for caches", caches=sorted(named))
    if not _wait(stop, clock, timeout, named):
        log.warning("stopped while waiting for caches", missing=_missing(named))
        return False
    log.info("caches synced", caches=sorted(named))
    return True


def _wait(stop: Stop, clock: Clock, timeout: float, named: Mapping[str, Syncing]) -> bool:
    changed = threading.Condition()

    def wake() -> None:
        with changed:
            changed.notify_all()

    deadline = clock.now() + timeout
    with contextlib.ExitStack() as callbacks:
        callbacks.enter_context(stop.calling(wake))
        for syncing in named.values():
            callbacks.enter_context(syncing.synced.calling(wake))
        with changed:
            while missing := _missing(named):
                if stop.is_set():
                    return False
                remaining = deadline - clock.now()
                if remaining <= 0:
                    raise CacheSyncTimeout(missing, timeout)
                clock.wait(changed, remaining)
    return True


def _missing(named: Mapping[str, Syncing]) -> list[str]:
    return sorted(name for name, syncing in named.items() if not syncing.synced.is_set())
