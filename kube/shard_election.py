"""One process's part in the elections of all shards (docs/adr/0010-shards-by-leases.md).

    standby ──takes the Lease──▶ held ──all processes have the same division──▶ open: acts for its keys
    open ──a process with fewer shards claims it, or the division differs──▶ closed ──no sync runs──▶ released: standby

Losing a Lease without giving it away ends the process, like lost leadership: its memory of the keys, and the writes
that it may be about to send, end with it (LE-20).

`ShardElection.tick` is one step and returns when the next is due; `ShardElections.run` runs a loop in a thread per
shard.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

import structlog
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client import Counter as CounterMetric

from kube.client import Client
from kube.errors import ApiError, Conflict
from kube.failure_log import FailureLog
from kube.leader_election import Callbacks, ElectionMetrics, LeaderElector, Recorder, Timing
from kube.leases import LeaseLock, record_of
from kube.shard_leases import Claim, Division, OtherDivisions, ask_for, claim_on, division_of, lease_name
from kube.sharding import Shards
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.product import METRIC_PREFIX
from ports.randomness import Randomness
from ports.stopping import Stop
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

_STEP = 0.1
"""The additional delay before a process takes a free shard, per shard that it holds, as a factor of the
retry period.
"""

_RESERVED = 2.0
"""Retry periods for which a released shard is left to the process that claimed it."""

_LOOK_AGAIN = 0.1
"""Seconds between checks of a shard that is being given away."""


class ShardMetrics:
    """Metrics of shards: their number, how many are held, and how many have moved."""

    def __init__(self, registry: CollectorRegistry, count: int, held: Callable[[], int]) -> None:
        """Register the series; `held` returns the number of shards that the process holds."""
        shards = Gauge(f"{METRIC_PREFIX}_shards", "Shards that the objects are divided into.", registry=registry)
        shards.set(count)
        mine = Gauge(f"{METRIC_PREFIX}_shards_held", "Shards whose objects this process manages.", registry=registry)
        mine.set_function(held)
        text = "Shards that this process has taken, and given."
        moves = CounterMetric(f"{METRIC_PREFIX}_shard_moves", text, ["move"], registry=registry)
        self.taken, self.given = moves.labels("taken"), moves.labels("given")


class ShardElections:
    """Takes part in the election of each shard until it is stopped or loses one."""

    def __init__(  # noqa: PLR0917  (what an election is made of)
        self,
        client: Client,
        namespace: str,
        base: str,
        count: int,
        identity: str,
        clock: Clock,
        randomness: Randomness,
        *,
        on_open: Callable[[int], None],
        on_given: Callable[[], None],
        on_lost: Callable[[], None],
        is_ready: Callable[[], bool] = lambda: True,
        annotations: Mapping[str, str] = MappingProxyType({}),
        timing: Timing | None = None,
        recorder: Recorder | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Prepare. `client` is only for elections, without retries (LE-4); `base` is the Lease of shard 0.

        `on_open` is called with a shard when the process starts to act for its keys, `on_given` when a shard is idle
        and about to be released, `on_lost` when the process must end. Nothing is taken until `is_ready` returns True,
        e.g. for a warm cache. `annotations` are written to each Lease.
        """
        registry = registry or CollectorRegistry()
        self.client, self.namespace, self.base = client, namespace, base
        self.identity, self.clock = identity, clock
        self.timing = timing or Timing()
        self.lease = Shards(count)
        self.on_open, self.on_given, self.on_lost, self.is_ready = on_open, on_given, on_lost, is_ready
        self.metrics = ShardMetrics(registry, count, lambda: len(self.lease.held))
        election_metrics = ElectionMetrics(registry)
        self._claimed: tuple[int, float] | None = None
        self._lock = threading.Lock()
        marks = {**annotations, **Division(count, identity).annotation}
        self.shards = tuple(
            ShardElection(self, number, marks, randomness, recorder, election_metrics) for number in range(count)
        )

    def run(self, stop: Stop) -> None:
        """Take part until `stop` is set or a shard is lost; then release the held shards."""
        threads = [
            threading.Thread(target=shard.run, args=(stop,), name=f"shard-{shard.number}-election")
            for shard in self.shards
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def is_healthy(self) -> bool:
        """False if this process believes that it holds a shard but is long overdue with its renewal (LE-21)."""
        return all(shard.elector.is_healthy() for shard in self.shards)

    def is_divided_otherwise(self) -> bool:
        """True if the holder of shard 0's Lease divides the clusters differently, or not at all."""
        first = self.shards[0]
        lease = first.lock.object
        if lease is None or first.elector.incumbent in ("", self.identity):
            return False
        division = division_of(lease)
        return division is None or division.count != self.lease.count

    def held_by(self) -> Counter[str]:
        """The number of shards that each process holds, as far as known."""
        return Counter(holder for shard in self.shards if (holder := shard.elector.incumbent))

    def should_ask_for(self, shard: int) -> bool:
        """True if this process should claim a shard: its holder has two more, and no other claim is open."""
        with self._lock:
            now, held = self.clock.now(), self.held_by()
            if (self._claimed and now < self._claimed[1]) or self.is_divided_otherwise() or not self.is_ready():
                return False
            holder = self.shards[shard].elector.incumbent
            if holder in ("", self.identity) or held[holder] < held[self.identity] + 2:
                return False
            self._claimed = shard, now + self.timing.lease_duration
            return True

    def has_asked_for(self, shard: int) -> bool:
        """True if this process has claimed a shard and not received it yet."""
        with self._lock:
            return self._claimed is not None and self._claimed[0] == shard

    def got(self, shard: int) -> None:
        """Record that a claimed shard was received."""
        with self._lock:
            if self._claimed and self._claimed[0] == shard:
                self._claimed = None


class ShardElection:
    """The election of one shard."""

    def __init__(  # noqa: PLR0917  (what an election is made of)
        self,
        fleet: ShardElections,
        number: int,
        annotations: Mapping[str, str],
        randomness: Randomness,
        recorder: Recorder | None,
        metrics: ElectionMetrics,
    ) -> None:
        self.number = number
        self._fleet = fleet
        self._name = lease_name(fleet.base, number)
        self.lock = LeaseLock(fleet.client, fleet.namespace, self._name, annotations)
        self.elector = LeaderElector(
            self.lock,
            fleet.identity,
            Callbacks(lambda: None, lambda: None),
            fleet.clock,
            randomness,
            name=self._name,
            timing=fleet.timing,
            recorder=recorder,
            metrics=metrics,
            wants=self._wants,
            # a suspended process cannot give up at its deadline, so the fence must close in time
            margin=fleet.timing.lease_duration - fleet.timing.renew_deadline,
        )
        count = fleet.lease.count
        self._others = OtherDivisions(fleet.client, fleet.namespace, fleet.base, count, fleet.clock)
        self._free_since: float | None = None
        self._is_open = False
        self._is_leaving = False
        self._waits = FailureLog(_log, fleet.clock)

    def run(self, stop: Stop) -> None:
        """Loop over `tick`, then release the shard."""
        delay: float | None = 0.0
        while delay is not None and not stop.wait(self._fleet.clock, delay):
            try:
                delay = self.tick()
            except ANY_FAILURE:
                _log.exception("the election of a shard failed", lease=self._name)
                delay = self._fleet.timing.retry_period
        if delay is not None:
            self.release()

    def tick(self) -> float | None:
        """One step; returns the seconds until the next, or None if the shard is lost and the process must end."""
        delay = self.elector.tick()
        if delay is None:
            self.elector.lease.drop()
            self._fleet.on_lost()
            return None
        if not self.elector.leads:
            self._ask()
        elif self._is_leaving or (self._is_open and (why := self._why_leave()) and self._close(why)):
            return self._give(delay)
        elif not self._is_open:
            self._open()
        return delay

    def release(self) -> None:
        """Release the shard if it is held. Call it only after all its workers have stopped."""
        self._fleet.lease.forget(self.number)
        self._is_open = self._is_leaving = False
        self.elector.step_down()

    def _open(self) -> None:
        """Start to act for the shard, unless another process divides the clusters differently."""
        others = self._others.look()
        if self._fleet.is_divided_otherwise():
            self.release()
        if others or not self.elector.leads:
            self._waits.failed("waiting to take a shard over", shard=self.number, until=others)
            return
        self._free_since, self._is_open = None, True
        self._fleet.lease.open(self.number, self.elector.lease)
        self._fleet.got(self.number)
        self._fleet.metrics.taken.inc()
        _log.info("shard taken", shard=self.number, of=self._fleet.lease.count)
        self._fleet.on_open(self.number)

    def _why_leave(self) -> str:
        """The reason to give the shard away; empty if there is none."""
        if self._fleet.is_divided_otherwise():
            return "another process divides the clusters otherwise"
        lease = self.lock.object
        wanted_by = claim_on(lease) if lease else ""
        return f"{wanted_by}, which has fewer, asks for it" if wanted_by not in ("", self._fleet.identity) else ""

    def _close(self, why: str) -> bool:
        _log.info("giving a shard away", shard=self.number, because=why)
        self._fleet.lease.close(self.number)
        self._is_leaving = True
        return True

    def _give(self, delay: float) -> float:
        """Release the shard as soon as nothing runs for it; until then its Lease is renewed."""
        if not self._fleet.lease.is_idle(self.number):
            return min(delay, _LOOK_AGAIN)
        self._fleet.on_given()
        self.release()
        self._fleet.metrics.given.inc()
        _log.info("shard given", shard=self.number, of=self._fleet.lease.count)
        return self._fleet.timing.retry_period

    def _wants(self) -> bool:
        """True if this process should take the free shard now: the fewer it holds, the earlier."""
        now, period = self._fleet.clock.now(), self._fleet.timing.retry_period
        if not self._fleet.is_ready() or self._fleet.is_divided_otherwise():
            return False
        if self._free_since is None:
            self._free_since = now
        waited = now - self._free_since
        if self._fleet.has_asked_for(self.number):
            return True
        patience = _STEP * period * self._fleet.held_by()[self._fleet.identity]
        if self.lock.object is not None and claim_on(self.lock.object):
            patience += _RESERVED * period
        return waited >= patience

    def _ask(self) -> None:
        """Claim the shard from its holder if that evens out the numbers."""
        if self.elector.incumbent:
            self._free_since = None
        lease = self.lock.object
        if lease is None or claim_on(lease) or not self._fleet.should_ask_for(self.number):
            return
        claim = Claim(self._fleet.identity, record_of(lease).transitions)
        try:
            ask_for(self._fleet.client, self._fleet.namespace, self._name, claim, self._fleet.timing.request_timeout)
        except Conflict:
            _log.debug("the holder of a shard has just renewed it; asking again later", shard=self.number)
        except (ApiError, TransportError) as error:
            self._waits.failed("could not ask for a shard", shard=self.number, cause=str(error))
