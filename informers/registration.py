"""One handler of an informer, with a buffer and a thread of its own (informers-workqueue.md 14.2)."""

import threading
from collections import deque
from collections.abc import Iterable
from enum import Enum

import structlog

from informers.handlers import ResourceEventHandler
from informers.metrics import ResourceMetrics
from informers.notifications import Add, Delete, Notification, Update
from informers.resync import Turn
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.latch import Latch
from ports.pace import Pace
from ports.stopping import Stop

log = structlog.get_logger(__name__)

_MANY_PENDING = 1024
_SLOW_SECONDS = 0.1
_PACE = Pace(1.0, 30.0)


class _Marker(Enum):
    """The mark in the buffer after the last notification of the initial list."""

    SYNCED = "synced"


class HandlerRegistration:
    """A handler registered with an informer. Its buffer is unbounded, so that it never delays others (INF-14)."""

    def __init__(
        self, name: str, handler: ResourceEventHandler, turn: Turn, clock: Clock, metrics: ResourceMetrics
    ) -> None:
        self.name = name
        self.turn = turn
        self.synced = Latch()
        """Set when the informer has synced and the handler has returned from every initial addition (INF-13)."""
        self._handler = handler
        self._clock = clock
        self._metrics = metrics
        self._log = log.bind(handler=name)
        self._condition = threading.Condition()
        self._buffer: deque[Notification | _Marker] = deque()
        self._stop = Stop()
        self._failures = 0
        self._warned = False
        metrics.show_handler(name, self.pending)

    def has_synced(self) -> bool:
        """True once the handler has received every object of the initial list."""
        return self.synced.is_set()

    def pending(self) -> int:
        """The number of buffered notifications."""
        return len(self._buffer)

    def put(self, notifications: Iterable[Notification]) -> None:
        """Buffer notifications."""
        self._append(notifications)

    def put_synced(self) -> None:
        """Buffer the mark after the initial list."""
        self._append((_Marker.SYNCED,))

    def run(self) -> None:
        """Deliver until cancelled. The body of the handler's thread."""
        while self._wait():
            pause = self.step()
            if pause:
                self._stop.wait(self._clock, pause)

    def step(self) -> float:
        """Deliver the oldest notification, if any; return the seconds until the next step (INF-16, INF-18)."""
        with self._condition:
            if not self._buffer or self._stop.is_set():
                return 0.0
            item = self._buffer.popleft()
        if item is _Marker.SYNCED:
            self.synced.set()
            return 0.0
        return self._deliver(item)

    def cancel(self) -> None:
        """Stop deliveries and drop the buffer, without waiting for a call that runs (INF-4, INF-19)."""
        if self._stop.is_set():
            return
        self._stop.set()
        with self._condition:
            self._buffer.clear()
            self._condition.notify_all()
        self._metrics.hide_handler(self.name, self.pending)

    def _append(self, items: Iterable[Notification | _Marker]) -> None:
        with self._condition:
            if self._stop.is_set():
                return
            self._buffer.extend(items)
            pending = len(self._buffer)
            self._condition.notify_all()
        if pending > _MANY_PENDING and not self._warned:
            self._warned = True
            self._log.warning("handler lags behind", pending=pending)

    def _wait(self) -> bool:
        """Wait for a notification; False if cancelled."""
        with self._condition:
            while not self._buffer and not self._stop.is_set():
                self._clock.wait(self._condition, None)
        return not self._stop.is_set()

    def _deliver(self, notification: Notification) -> float:
        started = self._clock.now()
        try:
            self._call(notification)
        except ANY_FAILURE:
            self._failures += 1
            self._metrics.handler_failed(self.name)
            self._log.exception("handler failed, notification dropped", notification=type(notification).__name__)
            return _PACE.after(self._failures)
        self._failures = 0
        seconds = self._clock.now() - started
        if self._warned and seconds > _SLOW_SECONDS:
            self._log.warning("slow handler call", seconds=round(seconds, 3), pending=self.pending())
        return 0.0

    def _call(self, notification: Notification) -> None:
        match notification:
            case Add(obj, is_in_initial_list):
                self._handler.on_add(obj, is_in_initial_list)
            case Update(old, new):
                self._handler.on_update(old, new)
            case Delete(obj):
                self._handler.on_delete(obj)
