"""One process's part in the elections of all shards (docs/adr/0010-shards-by-leases.md).

    standby ──the Lease is taken──▶ held ──nobody divides otherwise──▶ open: its keys are acted for
    open ──asked for by who has fewer, or divided otherwise now──▶ closed ──no sync runs──▶ released: standby

A Lease that is lost without being given ends the process, as leadership that is lost does: what it remembers of the
keys, and what it may be about to write, ends with it (LE-20).

`ShardElection.tick` is one step and says when the next is due; `ShardElections.run` is a loop in a thread for each.
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
"""Of the retry period: how much longer a process waits before it takes a free shard, for each that it holds."""

_RESERVED = 2.0
"""Retry periods for which a shard that was given is left to who asked for it."""

_LOOK_AGAIN = 0.1
"""Seconds until a shard that is being given is looked at again."""


class ShardMetrics:
    """How many shards there are, are held, and have moved."""

    def __init__(self, registry: CollectorRegistry, count: int, held: Callable[[], int]) -> None:
        """Register the series; `held` tells how many shards the process holds now."""
        shards = Gauge(f"{METRIC_PREFIX}_shards", "Shards that the objects are divided into.", registry=registry)
        shards.set(count)
        mine = Gauge(f"{METRIC_PREFIX}_shards_held", "Shards whose objects this process manages.", registry=registry)
        mine.set_function(held)
        text = "Shards that this process has taken, and given."
        moves = CounterMetric(f"{METRIC_PREFIX}_shard_moves", text, ["move"], registry=registry)
        self.taken, self.given = moves.labels("taken"), moves.labels("given")


class ShardElections:
    """Takes part in the election of each shard, until it is stopped or one is lost."""

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
        """Prepare. `client` is for elections alone, without retries (LE-4); `base` is the Lease of shard 0.

        `on_open` is called with a shard when its keys are acted for, `on_given` when a shard is idle and about to be
        released, `on_lost` when the process must end. Nothing is taken before `is_ready`, such as a warm cache.
        `annotations` are written to each Lease.
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
        """Take part until `stop` is set or a shard is lost; then release what is held."""
        threads = [
            threading.Thread(target=each.run, args=(stop,), name=f"shard-{each.number}-election")
            for each in self.shards
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def is_healthy(self) -> bool:
        """False when this process believes to hold a shard but has not renewed its Lease for much too long (LE-21)."""
        return all(each.elector.is_healthy() for each in self.shards)

    def is_divided_otherwise(self) -> bool:
        """Whether somebody holds the Lease of shard 0 who divides the clusters otherwise, or not at all."""
        first = self.shards[0]
        lease = first.lock.object
        if lease is None or first.elector.incumbent in ("", self.identity):
            return False
        division = division_of(lease)
        return division is None or division.count != self.lease.count

    def held_by(self) -> Counter[str]:
        """How many shards each process holds, as far as can be seen."""
        return Counter(holder for each in self.shards if (holder := each.elector.incumbent))

    def should_ask_for(self, shard: int) -> bool:
        """Whether to ask its holder for a shard now: it has two more than we have, and we asked for no other yet."""
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
        """Whether a shard is to come to us, because we asked for it."""
        with self._lock:
            return self._claimed is not None and self._claimed[0] == shard

    def got(self, shard: int) -> None:
        """What was asked for has come."""
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
            # a process that stands cannot give up at its deadline, so the fence has to
            margin=fleet.timing.lease_duration - fleet.timing.renew_deadline,
        )
        count = fleet.lease.count
        self._others = OtherDivisions(fleet.client, fleet.namespace, fleet.base, count, fleet.clock)
        self._free_since: float | None = None
        self._is_open = False
        self._is_leaving = False
        self._waits = FailureLog(_log, fleet.clock)

    def run(self, stop: Stop) -> None:
        """The loop over `tick`; at its end, the shard is released."""
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
        """One step; the seconds until the next, or None when the shard is lost and the process must end."""
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
        """Hold the shard no more, if it is held. Only after all workers for it have stopped."""
        self._fleet.lease.forget(self.number)
        self._is_open = self._is_leaving = False
        self.elector.step_down()

    def _open(self) -> None:
        """Act for the shard, unless others do that divide the clusters otherwise."""
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
        """Why the shard is given away; empty: it is not."""
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
        """Release the shard as soon as nothing runs for it; its Lease is renewed until then."""
        if not self._fleet.lease.is_idle(self.number):
            return min(delay, _LOOK_AGAIN)
        self._fleet.on_given()
        self.release()
        self._fleet.metrics.given.inc()
        _log.info("shard given", shard=self.number, of=self._fleet.lease.count)
        return self._fleet.timing.retry_period

    def _wants(self) -> bool:
        """Whether to take the shard, now that it can be had: the fewer a process holds, the sooner it does."""
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
        """Ask the holder for the shard, if that makes us more equal."""
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
