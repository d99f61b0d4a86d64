"""Several processes that share the keys of a fleet, in one thread; each has its own clock, which may stand still.

The judge uses the time of the world: no two processes may write for one key at the same instant.
"""

import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from kube.client import Client
from kube.shard_election import ShardElection, ShardElections
from ports.fencing import is_open
from ports.randomness import SeededRandomness
from ports.transport import ByteStream, Request, RequestTimeout, Response
from tests.kube.fakes import FakeApi, answer

KEYS = tuple(f"ns/c{number}" for number in range(9))
BASE = "tidb-controller-manager"


class Leases(FakeApi):
    """The fake API with lists."""

    def request(self, request: Request) -> Response:
        path = urlsplit(request.url).path
        if request.method == "GET" and path.endswith("/leases"):
            return answer(200, {"kind": "LeaseList", "metadata": {}, "items": list(self.objects.values())})
        return super().request(request)


class TwoWriters(AssertionError):
    """Raised at an instant at which two processes may write for one key."""


class _Clock:
    """A process's clock: it runs at its own rate, and during a request it is ahead of the world's time.

    The judge uses the world's time.
    """

    def __init__(self, world: "Fleet", rate: float) -> None:
        self._world, self._rate = world, rate
        self.reached = 0.0
        self.set_by = 0.0
        """Seconds by which an administrator has moved the time of day."""

    def now(self) -> float:
        local = 1000.0 + self._world.now * self._rate
        return local if self._world.judging else max(local, self.reached)

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now() + self.set_by)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        raise NotImplementedError


class _Connection:
    """A connection to the API server with latency, as the process experiences it."""

    def __init__(self, world: "Fleet", process: "Process") -> None:
        self._world, self._process = world, process

    def request(self, request: Request) -> Response:
        latency = self._world.latency()
        self._world.judge()
        if latency > (request.timeout or 5.0):
            # the server may apply a request although the answer is lost
            if self._world.chance.uniform(0.0, 1.0) < 0.5:
                self._world.api.request(request)
            self._process.pass_time(request.timeout or 5.0)
            raise RequestTimeout(request.method, request.url, "no answer")
        response = self._world.api.request(request)
        self._process.pass_time(latency)
        return response

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise NotImplementedError


@dataclass
class Process:
    """One replica. `rate` is the speed of its clock."""

    name: str
    world: "Fleet"
    count: int
    rate: float = 1.0
    alive: bool = True
    busy_until: float = 0.0

    def __post_init__(self) -> None:
        self.clock = _Clock(self.world, self.rate)
        self.elections = ShardElections(
            Client(_Connection(self.world, self)),
            "ns",
            BASE,
            self.count,
            self.name,
            self.clock,
            SeededRandomness(len(self.world.processes)),
            on_open=lambda _shard: None,
            on_given=lambda: None,
            on_lost=self.die,
        )

    def pass_time(self, seconds: float) -> None:
        """Let time pass while this process is busy."""
        self.busy_until = max(self.busy_until, self.world.now) + seconds
        self.clock.reached = self.clock.now() + seconds * self.rate

    def may_write(self, key: str) -> bool:
        """True if its fence allows a write for a key now, in a sync that already runs."""
        return self.alive and is_open(self.elections.lease.fence_of(key))

    def owned(self) -> set[str]:
        return {key for key in KEYS if self.alive and self.elections.lease.owns(key) and self.may_write(key)}

    def die(self) -> None:
        self.alive = False

    def leave(self) -> None:
        """End as after SIGTERM: stop all work and release the held Leases."""
        for each in self.elections.shards:
            each.release()
        self.alive = False


class Fleet:
    """The world: real time, the Leases, the processes."""

    def __init__(self, seed: int = 1) -> None:
        self.now = 0.0
        self.judging = False
        self.api = Leases()
        self.chance = SeededRandomness(seed)
        self.latency: Callable[[], float] = lambda: 0.01
        self.processes: list[Process] = []
        self._due: list[tuple[float, int, Process, ShardElection]] = []
        self._order = itertools.count()
        self._paused: dict[str, float] = {}

    def start(self, name: str, count: int, rate: float = 1.0) -> Process:
        """Start a process that divides the keys into `count` shards."""
        process = Process(name, self, count, rate)
        self.processes.append(process)
        for each in process.elections.shards:
            self._plan(self.now, process, each)
        return process

    def pause(self, process: Process, seconds: float) -> None:
        """Suspend a process; its clock continues."""
        self._paused[process.name] = self.now + seconds

    def run(self, seconds: float) -> None:
        """Let time pass. Raises TwoWriters."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            at, _, process, election = heapq.heappop(self._due)
            self._pass(max(at - self.now, 0.0))
            self._step(process, election)
        self._pass(end - self.now)

    def judge(self) -> None:
        """Raise TwoWriters if two processes may write for one key."""
        self.judging = True
        try:
            for key in KEYS:
                writers = [each.name for each in self.processes if each.may_write(key)]
                if len(writers) > 1:
                    raise TwoWriters(f"at {self.now:.2f} s both {' and '.join(writers)} may write for {key}")
        finally:
            self.judging = False

    def unserved(self) -> list[str]:
        """The keys that no process acts for."""
        return [key for key in KEYS if not any(key in each.owned() for each in self.processes)]

    def sizes(self) -> list[int]:
        """The number of shards per living process, in ascending order."""
        return sorted(len(each.elections.lease.held) for each in self.processes if each.alive)

    def time_until_served(self, within: float) -> float:
        """Seconds until each key is acted for. Raises AssertionError after `within` seconds."""
        started = self.now
        while self.unserved():
            assert self.now - started < within, f"after {within} s nobody acts for {self.unserved()}"
            self.run(0.1)
        return self.now - started

    def _step(self, process: Process, election: ShardElection) -> None:
        if not process.alive:
            return
        ready = max(self._paused.get(process.name, 0.0), process.busy_until)
        if ready > self.now:
            self._plan(ready, process, election)
            return
        delay = election.tick()
        self.judge()
        if delay is not None:
            self._plan(max(self.now, process.busy_until) + delay / process.rate, process, election)

    def _plan(self, at: float, process: Process, election: ShardElection) -> None:
        heapq.heappush(self._due, (at, next(self._order), process, election))

    def _pass(self, seconds: float) -> None:
        self.now += seconds
        self.judge()
