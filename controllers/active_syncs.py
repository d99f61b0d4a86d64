"""The syncs that are running now, and a report of those that run suspiciously long (informers-workqueue.md CW-7)."""

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from ports.clock import Clock

_log = structlog.get_logger(__name__)

STUCK_AFTER = 300.0
"""Seconds after which a running sync is reported. It is not stopped, because Python cannot stop a thread."""


@dataclass(slots=True)
class _Sync:
    key: str
    started: float
    reported: bool = False


class ActiveSyncs:
    """The syncs of one controller, by thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._syncs: dict[int, _Sync] = {}

    @contextmanager
    def including(self, key: str) -> Iterator[None]:
        """Register a sync of `key` by the calling thread for the duration of the block."""
        me = threading.get_ident()
        with self._lock:
            self._syncs[me] = _Sync(key, self._clock.now())
        try:
            yield
        finally:
            with self._lock:
                del self._syncs[me]

    def keys(self) -> list[str]:
        """The keys that are being synced, sorted."""
        with self._lock:
            return sorted(sync.key for sync in self._syncs.values())

    def report_stuck(self) -> None:
        """Log the stack of each sync that has run longer than STUCK_AFTER, once per sync."""
        for thread, sync in self._newly_stuck():
            frame = sys._current_frames().get(thread)
            _log.warning(
                "sync is taking very long",
                key=sync.key,
                seconds=self._clock.now() - sync.started,
                stack="".join(traceback.format_stack(frame)) if frame else "",
            )

    def _newly_stuck(self) -> list[tuple[int, _Sync]]:
        with self._lock:
            latest = self._clock.now() - STUCK_AFTER
            stuck = [(thread, s) for thread, s in self._syncs.items() if s.started <= latest and not s.reported]
            for _, sync in stuck:
                sync.reported = True
            return stuck
