"""The engine of every controller: workers take keys from a queue, sync them, and decide when to retry.

    get → sync ─┬─ returned            → forget          (→ again after Result.requeue_after)
                ├─ RequeueError        → add, rate limited; or after its own delay
                ├─ IgnoreError         → forget
                ├─ LeaseExpired        → add, rate limited; logged without a stack
                └─ any other exception → add, rate limited; logged with its stack
        → done, always

A requeued key keeps its priority (PQ-10).

Keys whose data plane does not answer move to a slow lane with a few workers of its own, so that they never delay other
keys (reliability.md R31). The first sync after a server has stopped answering is not known to be slow. When it takes
long, a new thread takes the place of its worker.

Rules: informers-workqueue.md CW-4..7, CW-10, MET-10..12; lifecycle.md 1.3.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

import structlog
from structlog.contextvars import bound_contextvars

from controllers.active_syncs import ActiveSyncs
from controllers.enqueueing import DETAIL, ECHO, NEWS
from controllers.errors import find_requeue, is_ignorable, sentence
from controllers.metrics import SyncMetrics, SyncOutcome
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.fencing import LeaseExpired
from ports.stopping import Stop
from workqueue.priority_queue import PriorityQueue
from workqueue.timers import Timers, require_seconds

_log = structlog.get_logger(__name__)

_WORKER_PAUSE = 1.0
"""Seconds after which a worker restarts that an exception of the engine has ended (CW-4)."""

_SLOW_WORKERS = 2

_PATIENCE = 0.25
"""Seconds after which a new thread takes the place of a worker whose sync still runs.

Shorter while there are stand-ins: when the servers of many clusters fall silent at once, the other keys would wait this
long for every few of them.
"""

_MOST_STAND_INS = 32
"""The maximum number of running syncs that have lost their place to a new thread."""

_STUCK_CHECK = 60.0
"""Seconds between two searches for stuck syncs."""

_SOONEST = 0.1
"""The minimum delay in seconds before a key whose sync requests another: a shorter one would be a busy loop."""

_AFTER = {DETAIL: 3.0, ECHO: 10.0}
"""Delays in seconds of syncs for changes that no stage waits for, by priority."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a successful sync.

    The controller syncs the key again after `requeue_after` seconds; with None, 0 or infinity it does not. `tried` is
    False if the sync did nothing, so that earlier failures still count. The constructor raises ValueError for NaN.
    """

    requeue_after: float | None = None
    tried: bool = True

    def __post_init__(self) -> None:
        """Reject a bad delay here, so that the error names the sync that requests it."""
        require_seconds(self.requeue_after or 0.0, "requeue_after")


Sync = Callable[[str], Result | None]
"""Makes the object of a key match its spec. Runs at most once at a time per key."""


@dataclass(slots=True)
class _Place:
    """A worker's place during one sync: given up if a stand-in has it, left if the sync has ended."""

    is_given_up: bool = False
    is_left: bool = False


class Controller:
    """Syncs the keys of one queue. At most one worker syncs a key at a time."""

    def __init__(
        self,
        name: str,
        queue: PriorityQueue[str],
        sync: Sync,
        *,
        clock: Clock,
        metrics: SyncMetrics,
        drain_timeout: float = 30.0,
        is_slow: Callable[[str], bool] = lambda _: False,
        timers: Timers | None = None,
    ) -> None:
        """`drain_timeout` is the number of seconds that running syncs may take after the stop (CW-10).

        `is_slow` returns True if the next sync of a key may wait for a silent server. `timers` detect syncs that take
        long; without them, no stand-ins are started.
        """
        self.name = name
        self.sync = sync
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._drain_timeout = drain_timeout
        self._is_slow = is_slow
        self._timers = timers
        self._places = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._most_workers = self._workers = self._idle = self._slow_workers = 0
        self._stand_ins = 0
        self._slow_lane: SimpleQueue[str | None] = SimpleQueue()
        self._running = ActiveSyncs(clock)
        self._stop = Stop()

    def enqueue(self, key: str, /, priority: int = NEWS) -> None:
        """Add a key, for event handlers (an `Enqueue`). DETAIL and ECHO are delayed."""
        if after := _AFTER.get(priority):
            self._queue.add_with_opts(key, after=after)
        else:
            self._queue.add(key, priority)

    def run(self, workers: int, stop: Stop) -> bool:
        """Work with up to `workers` threads until `stop` is set, then wait for running syncs; True if all finished.

        A thread starts when all others have keys, so that a controller without objects has one.
        Queued keys are dropped, because the next leader lists all objects. WHEN the result is False THEN a worker may
        still act, and the leader lease must not be released (CW-11).
        """
        self._stop = stop
        self._metrics.set_workers(workers)
        with self._places:
            self._most_workers = workers
            if not self._start_worker() and not stop.is_set():
                raise RuntimeError(f"cannot start a thread for the controller {self.name}")
        _log.info("controller started", controller=self.name, workers=workers)
        while not stop.wait(self._clock, _STUCK_CHECK):
            self._running.report_stuck()
        return self._drain()

    def work(self, stop: Stop) -> None:
        """Sync keys, as one worker, until the queue is shut down or a stand-in has this worker's place.

        Restarts after an exception (CW-4).
        """
        while not stop.is_set():
            try:
                while self.process_next_work_item():
                    pass
                return
            except ANY_FAILURE:
                # a defect of the engine, not of a sync: the other keys must still be synced
                _log.exception("worker failed, restarting it", controller=self.name)
                stop.wait(self._clock, _WORKER_PAUSE)

    def process_next_work_item(self) -> bool:
        """Wait for a key and sync it. Return False if the queue is shut down and empty, or a stand-in has the place."""
        key = self._next()
        if key is None:
            return False
        if self._goes_slowly(key) and self._has_slow_worker():
            # for the queue the key is still being processed, so no other worker gets it
            self._slow_lane.put(key)
            return True
        return self._process_in_place(key)

    def _next(self) -> str | None:
        """Wait for a key, and leave another worker waiting for the next one; None if the queue is shut down."""
        with self._places:
            self._idle += 1
        key: str | None = None
        try:
            key, _ = self._queue.get()
            return key
        finally:
            with self._places:
                self._idle -= 1
                if key is not None and not self._idle and self._workers < self._most_workers:
                    self._start_worker()

    def _start_worker(self) -> bool:
        has_started = self._start(partial(self.work, self._stop), f"worker-{self._workers}")
        self._workers += has_started
        return has_started

    def _has_slow_worker(self) -> bool:
        """Start one more if there may be more; True if there is one, and False where no thread can start."""
        with self._places:
            if self._slow_workers < _SLOW_WORKERS:
                self._slow_workers += self._start(self._work_slowly, f"slow-worker-{self._slow_workers}")
            return bool(self._slow_workers)

    def _start(self, body: Callable[[], None], role: str) -> bool:
        """Start a thread; False if the controller stops, or if the process has reached its limit of threads."""
        thread = threading.Thread(target=body, name=f"{self.name}-{role}")
        if self._stop.is_set():
            return False
        try:
            thread.start()
        except RuntimeError:
            return False
        self._threads = [*(running for running in self._threads if running.is_alive()), thread]
        return True

    def _process_in_place(self, key: str) -> bool:
        """Sync a key. Return False if a stand-in has this thread's place."""
        if self._timers is None:
            self._process(key)
            return True
        place = _Place()
        timer = self._timers.call_at(self._clock.now() + self._patience(), partial(self._stand_in, place))
        try:
            self._process(key)
        except ANY_FAILURE:
            if not self._leave(place):
                raise
            _log.exception("worker failed, its stand-in works on", controller=self.name)
            return False
        finally:
            timer.cancel()
        return not self._leave(place)

    def _patience(self) -> float:
        with self._places:
            return _PATIENCE / (1 + self._stand_ins)

    def _stand_in(self, place: "_Place") -> None:
        """Start a thread in the place of a worker whose sync takes long. Called by the timers."""
        with self._places:
            if place.is_left or self._stand_ins >= _MOST_STAND_INS:
                return
            if self._start(partial(self.work, self._stop), "stand-in"):
                place.is_given_up = True
                self._stand_ins += 1

    def _leave(self, place: "_Place") -> bool:
        """Mark the sync as ended; return True if a stand-in has its place. Idempotent."""
        with self._places:
            if place.is_given_up and not place.is_left:
                self._stand_ins -= 1
            place.is_left = True
            return place.is_given_up

    def _goes_slowly(self, key: str) -> bool:
        try:
            return self._is_slow(key)
        except ANY_FAILURE:
            # the key must reach `done`, or the queue never returns it again
            _log.exception("cannot determine whether a key is slow", controller=self.name, key=key)
            return False

    def process_ready_item(self) -> bool:
        """Sync a key if one is ready, without waiting; return True if one was. The step of a simulated worker."""
        key, _ = self._queue.try_get()
        if key is None:
            return False
        self._process(key)
        return True

    def _work_slowly(self) -> None:
        """Sync keys of the slow lane, as one worker, until the lane is closed."""
        while (key := self._slow_lane.get()) is not None:
            try:
                self._process(key)
            except ANY_FAILURE:
                _log.exception("worker failed, restarting it", controller=self.name)

    def _drain(self) -> bool:
        drained = self._queue.shut_down_with_drain(self._drain_timeout)
        for _ in range(_SLOW_WORKERS):
            self._slow_lane.put(None)
        if not drained:
            _log.warning("syncs did not finish in time", controller=self.name, keys=self._running.keys())
            return False
        with self._places:
            threads = list(self._threads)
        for thread in threads:
            thread.join(self._drain_timeout)
        _log.info("controller stopped", controller=self.name)
        return True

    def _process(self, key: str) -> None:
        try:
            if not self._stop.is_set():
                self._sync_measured(key)
        finally:
            self._queue.done(key)

    def _sync_measured(self, key: str) -> None:
        started = self._clock.now()
        with bound_contextvars(controller=self.name, key=key):
            with self._metrics.one_active(), self._running.including(key):
                outcome = self._sync_and_requeue(key)
            self._metrics.record(outcome, self._clock.now() - started)

    def _sync_and_requeue(self, key: str) -> SyncOutcome:
        try:
            result = _result(self.sync(key))
        except ANY_FAILURE as error:
            return self._requeue_failed(key, error)
        after = result.requeue_after or 0.0
        if result.tried:
            self._queue.forget(key)
        if after > 0:
            self._queue.add_after(key, max(after, _SOONEST))
        return "success"

    def _requeue_failed(self, key: str, error: BaseException) -> SyncOutcome:
        if requeue := find_requeue(error):
            self._requeue(key, requeue.after)
            log = _log.warning if requeue.untold and self._is_worth_a_line(key) else _log.debug
            log("still need sync, requeuing", reason=sentence(error), after=requeue.after)
            return "requeue"
        if is_ignorable(error):
            self._queue.forget(key)
            _log.debug("sync ended early", reason=sentence(error))
            return "success"
        self._requeue(key)
        log = _log.error if self._is_worth_a_line(key) else _log.debug
        if isinstance(error, LeaseExpired):
            log("write held back: this process no longer holds the lease", reason=sentence(error))
            return "error"
        log("sync failed, requeuing", failures=self._queue.num_requeues(key), exc_info=error)
        return "error"

    def _is_worth_a_line(self, key: str) -> bool:
        """True for the 1st, 2nd, 4th, 8th, … failure in a row, so that hours of failures do not fill the log."""
        return self._queue.num_requeues(key).bit_count() <= 1

    def _requeue(self, key: str, after: float | None = None) -> None:
        if after is None or not 0 < after < math.inf:
            self._queue.add_rate_limited(key)
            return
        self._queue.forget(key)
        self._queue.add_after(key, max(after, _SOONEST))


def _result(returned: object) -> Result:
    """The Result of a sync; an empty one for None. Raises TypeError for any other type."""
    if returned is None:
        return Result()
    if not isinstance(returned, Result):
        raise TypeError(f"a sync returns a Result or None, not {returned!r}")
    return returned
