"""One leader among many processes, by a Lease (informers-workqueue.md 19).

    standby ──tick: the Lease is free or has expired, and was taken──▶ leader
    leader  ──tick: renewed──▶ leader ──no renewal for renew_deadline seconds, or stop──▶ over

`tick` is one attempt and returns when the next is due; `run` is the loop. A standby also watches the Lease, so that it
takes a freed Lease immediately (`kube.lease_watch`). Only this process's monotonic clock decides if another holder's
Lease has expired (LE-11): clocks of other machines do not matter.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from logging import ERROR
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from kube.errors import ApiError, NotFound
from kube.events import NORMAL
from kube.failure_log import FailureLog
from kube.lease_watch import LeaseWatch
from kube.leases import LeaseLock, LeaseRecord, LocalLease, micro_time
from kube.objects import Object
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.latch import Latch
from ports.randomness import Randomness
from ports.stopping import Stop
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

_JITTER = 1.2
"""The jitter of a standby, as a factor of the retry period, so that standbys do not retry in step."""

_EAGERNESS = 4
"""The number of attempts per retry period for a Lease that can be taken."""

_HEALTH_TOLERANCE = 20.0
"""Seconds that a leader may be past its lease before its health check fails (LE-21)."""


class LeaderElectionConfigError(ValueError):
    """Raised for inconsistent parameters of the election: names the parameter and the rule."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of the election in seconds (LE-10). Raises LeaderElectionConfigError if they contradict each other."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Check the rules of LE-10."""
        if self.retry_period <= 0:
            raise LeaderElectionConfigError(f"retry period must be positive, not {self.retry_period:g} s")
        if self.lease_duration < 1:
            raise LeaderElectionConfigError(f"lease duration must be at least 1 s, not {self.lease_duration:g} s")
        if self.renew_deadline <= _JITTER * self.retry_period:
            raise LeaderElectionConfigError(
                f"renew deadline ({self.renew_deadline:g} s) must be greater than "
                f"{_JITTER} times the retry period ({self.retry_period:g} s)"
            )
        if self.lease_duration <= self.renew_deadline:
            raise LeaderElectionConfigError(
                f"lease duration ({self.lease_duration:g} s) must be greater than "
                f"the renew deadline ({self.renew_deadline:g} s)"
            )

    @property
    def noted_duration(self) -> int:
        """The duration in the Lease, in whole seconds: rounded up, so that other processes wait long enough."""
        return math.ceil(self.lease_duration)

    @property
    def request_timeout(self) -> float:
        """The timeout of a request, so short that one hung request cannot cost the lease (LE-4)."""
        return max(1.0, self.renew_deadline / 2)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The process's reactions to the election.

    `on_started_leading` and `on_new_leader` run in their own threads, `on_stopped_leading` in the elector's thread, on
    every exit (LE-16). A failure of the first ends the leadership; one of the second is logged.
    """

    on_started_leading: Callable[[], None]
    on_stopped_leading: Callable[[], None]
    on_new_leader: Callable[[str], None] = lambda _: None


class Recorder(Protocol):
    """The receiver of events."""

    def event(self, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        """Record that `reason` happened to `about`."""


class ElectionMetrics:
    """The `leader_election_*` series (8.4)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the series."""
        self._status = Gauge("leader_election_master_status", "1 while leading.", ["name"], registry=registry)
        self._slow = Counter(
            "leader_election_slowpath_total", "Renewals that had to read first.", ["name"], registry=registry
        )

    def leading(self, name: str, leads: bool) -> None:
        """Set the gauge."""
        self._status.labels(name).set(1 if leads else 0)

    def slow_path(self, name: str) -> None:
        """Count a renewal that had to read the Lease first."""
        self._slow.labels(name).inc()


def identity(hostname: str, randomness: Randomness) -> str:
    """`<hostname>_<uuid>`: a restarted process has another identity (LE-24)."""
    return f"{hostname}_{randomness.uuid()}"


class LeaderElector:
    """Takes part in one election, once: when leadership is lost, `run` returns and the process should end (LE-20)."""

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        callbacks: Callbacks,
        clock: Clock,
        randomness: Randomness,
        *,
        name: str,
        timing: Timing | None = None,
        watch: LeaseWatch | None = None,
        recorder: Recorder | None = None,
        metrics: ElectionMetrics | None = None,
        wants: Callable[[], bool] | None = None,
        margin: float = 0.0,
    ) -> None:
        """Prepare. `lock` needs its own client, without retries (LE-4); `name` labels metrics and logs.

        With `watch` a standby takes a freed Lease immediately; without one it polls (LE-14). `wants` is called before
        an available Lease is taken; a standby with it retries as soon as another holder's Lease expires, without
        jitter. `margin` is the seconds by which the fence closes before the Lease expires, for a slow clock.

        The Lease is released when `run` is stopped, so stop it only after all workers have ended (CW-11). Raises
        LeaderElectionConfigError.
        """
        if not identity:
            raise LeaderElectionConfigError("the identity of a candidate must not be empty")
        self.lease = LocalLease(clock)
        self._lock = lock
        self._identity = identity
        self._callbacks = callbacks
        self._clock = clock
        self._randomness = randomness
        self._name = name
        self._timing = timing or Timing()
        self._watch = watch
        self._failures = FailureLog(_log, clock)
        self._nap = Latch()
        self._recorder = recorder
        self._metrics = metrics
        self._wants = wants
        self._margin = margin
        self._leading = False
        self._gave_up = False
        self._observed: LeaseRecord | None = None
        self._observed_at = 0.0
        self._reported_leader: str | None = None
        self._renewal_started: float | None = None
        self._set_leading_metric(False)

    @property
    def leader(self) -> str:
        """The last known holder, or empty."""
        return self._observed.holder if self._observed else ""

    @property
    def is_leader(self) -> bool:
        """True if this process is the last known holder (LE-22). Before acting, check `lease` as well."""
        return self.leader == self._identity

    @property
    def leads(self) -> bool:
        """True from when this process takes the Lease until it loses it."""
        return self._leading

    @property
    def incumbent(self) -> str:
        """The current holder as far as known; empty if the Lease can be taken."""
        return self.leader if self._observed and self._is_in_force(self._observed) else ""

    def is_healthy(self) -> bool:
        """False if this process believes that it leads but is long overdue with its renewal (LE-21)."""
        overdue = self._clock.now() - self._observed_at - self._timing.lease_duration
        return not self.is_leader or overdue <= _HEALTH_TOLERANCE

    def run(self, stop: Stop) -> None:
        """Take part until `stop` is set or leadership is lost."""
        try:
            delay: float | None = 0.0
            while delay is not None and not self._rest(stop, delay):
                delay = self.tick()
                self._listen()
        finally:
            self._end(stop.is_set())

    def tick(self) -> float | None:
        """Try to acquire or renew; return the seconds until the next attempt, or None when leadership is lost."""
        started = self._clock.now()
        if self._renewal_started is None:
            self._renewal_started = started
        deadline = self._renewal_started + self._timing.renew_deadline if self._leading else math.inf
        succeeded = self._try(deadline)
        self._report_new_leader()
        if succeeded:
            self._renewal_started = None
            self._become_leader()
            return self._timing.retry_period
        if not self._leading:
            self._renewal_started = None
            return self._standby_pause()
        left = deadline - self._clock.now()
        if left <= 0 or not self.is_leader:
            _log.error("leadership lost", lease=self._name, leader=self.leader, seconds_left=round(left, 3))
            return None
        return min(self._timing.retry_period, left)

    def step_down(self) -> None:
        """Stop leading and release the Lease, as at the end of `run`; for callers that call `tick` themselves.

        Call it only after all workers have stopped.
        """
        self._stop_leading(stopped=True)

    def release(self) -> bool:
        """Release the Lease if this process still holds it; True if it was released (LE-19).

        Call it only after all workers have stopped.
        """
        self.lease.drop()
        timeout = self._timing.renew_deadline
        try:
            record = self._lock.read(timeout)
            if record.holder != self._identity:
                return False
            now = micro_time(self._clock.wall())
            freed = replace(record, holder="", duration=1, acquired=now, renewed=now)
            self._observe(self._lock.update(freed, timeout), self._clock.now())
        except (ApiError, TransportError) as error:
            _log.warning("the lease could not be released", lease=self._name, cause=str(error))
            return False
        return True

    def _standby_pause(self) -> float:
        period = self._timing.retry_period
        if self._wants is None:
            return period * self._randomness.uniform(1.0, 1.0 + _JITTER)
        if self._observed is None or not self.incumbent:
            return period / _EAGERNESS
        left = self._observed_at + self._observed.duration - self._clock.now()
        return min(period, left + period / _EAGERNESS)

    def _rest(self, stop: Stop, delay: float) -> bool:
        """Wait until the next attempt is due or the Lease is free; True if the loop should stop."""
        with stop.calling(self._wake):
            self._nap.wait(self._clock, delay)
        # a fresh latch before the attempt, so that a notification during the attempt shortens the next wait
        self._nap = Latch()
        return stop.is_set() or self._gave_up

    def _wake(self) -> None:
        self._nap.set()

    def _listen(self) -> None:
        """Watch the Lease as long as another process may hold it."""
        if self._watch is None:
            return
        if self._leading:
            self._watch.stop()
        else:
            self._watch.start(self._wake)

    def _try(self, deadline: float) -> bool:
        try:
            succeeded = self._acquire_or_renew(deadline)
            self._failures.worked("leader election works again", lease=self._name)
            return succeeded
        except (ApiError, TransportError) as error:
            self._failures.failed("leader election attempt failed", lease=self._name, cause=str(error))
            return False
        except ANY_FAILURE:
            # a standby whose loop ended here would never lead, without a trace
            self._failures.failed("leader election attempt failed", lease=self._name, level=ERROR, exc_info=True)
            return False

    def _acquire_or_renew(self, deadline: float) -> bool:
        """Try to acquire or renew once (LE-12)."""
        if self.is_leader and self._observed and self._is_in_force(self._observed):
            try:
                return self._write(self._ours(self._observed), deadline)
            except (ApiError, TransportError) as error:
                _log.debug("renewing by the fast path failed", lease=self._name, cause=str(error))
        try:
            record = self._lock.read(self._timeout(deadline))
        except NotFound:
            return self._may_take() and self._write(self._ours(None), deadline, create=True)
        if record != self._observed:
            self._observe(record, self._clock.now())
        if record.holder not in ("", self._identity) and self._is_in_force(record):
            return False
        if not self._may_take():
            return False
        if self._leading and self._metrics:
            self._metrics.slow_path(self._name)
        return self._write(self._ours(record), deadline)

    def _may_take(self) -> bool:
        return self._leading or self._wants is None or self._wants()

    def _ours(self, record: LeaseRecord | None) -> LeaseRecord:
        """The record to write: a renewal if this process holds `record`, a takeover otherwise."""
        now = micro_time(self._clock.wall())
        ours = LeaseRecord(self._identity, self._timing.noted_duration, acquired=now, renewed=now)
        if record is None:
            return ours
        if record.holder == self._identity:
            return replace(ours, acquired=record.acquired, transitions=record.transitions)
        return replace(ours, transitions=record.transitions + 1)

    def _write(self, record: LeaseRecord, deadline: float, *, create: bool = False) -> bool:
        sent = self._clock.now()
        write = self._lock.create if create else self._lock.update
        written = write(record, self._timeout(deadline))
        self._observe(written, sent)
        if written.holder != record.holder:
            # a proxy or an outdated answer: without a Lease in its name, this process may not be the only leader
            _log.warning("the server answered another Lease than was written", lease=self._name, holder=written.holder)
            return False
        # the fence must not outlast the Lease as other processes read it, in whole seconds
        self.lease.extend(sent, record.duration - self._margin)
        return True

    def _timeout(self, deadline: float) -> float:
        """Seconds that a request may take; a renewal never exceeds its deadline (LE-15). Raises _OutOfTime."""
        left = deadline - self._clock.now()
        if left <= 0:
            raise _OutOfTime("LEASE", self._name, "the renew deadline has passed")
        return min(self._timing.request_timeout, left)

    def _observe(self, record: LeaseRecord, at: float) -> None:
        self._observed, self._observed_at = record, at
        if record.holder != self._identity:
            self.lease.drop()

    def _is_in_force(self, record: LeaseRecord) -> bool:
        return self._observed_at + record.duration > self._clock.now()

    def _become_leader(self) -> None:
        if self._leading:
            return
        self._leading = True
        self._set_leading_metric(True)
        self._say("became leader")
        _in_a_thread(self._start_leading)

    def _start_leading(self) -> None:
        try:
            self._callbacks.on_started_leading()
        except BaseException:
            # a leader that does nothing would keep all other processes from leading
            _log.critical("could not start to lead, giving up", lease=self._name, exc_info=True)
            self._gave_up = True
            self._wake()

    def _end(self, stopped: bool) -> None:
        if self._watch:
            self._watch.stop()
        self._stop_leading(stopped)
        self._callbacks.on_stopped_leading()
        if self._watch:
            self._watch.join()

    def _stop_leading(self, stopped: bool) -> None:
        led, self._leading = self._leading, False
        self.lease.drop()
        self._set_leading_metric(False)
        if led:
            self._say("stopped leading")
        if led and stopped:
            self.release()
            self._report_new_leader()

    def _report_new_leader(self) -> None:
        if self._observed is None or self._observed.holder == self._reported_leader:
            return
        leader = self._reported_leader = self._observed.holder
        _log.info("new leader", lease=self._name, leader=leader)
        _in_a_thread(lambda: self._notify_of_leader(leader))

    def _notify_of_leader(self, leader: str) -> None:
        try:
            self._callbacks.on_new_leader(leader)
        except ANY_FAILURE:
            _log.exception("callback failed", lease=self._name, leader=leader)

    def _say(self, what: str) -> None:
        _log.info("leader election", lease=self._name, identity=self._identity, outcome=what)
        lease = self._lock.object
        if self._recorder and lease is not None:
            self._recorder.event(lease, NORMAL, "LeaderElection", f"{self._identity} {what}")

    def _set_leading_metric(self, leads: bool) -> None:
        if self._metrics:
            self._metrics.leading(self._name, leads)


class _OutOfTime(TransportError):
    """Raised when no time is left to send a request."""


def _in_a_thread(callback: Callable[[], None]) -> None:
    threading.Thread(target=callback, name="leader-election-callback").start()
