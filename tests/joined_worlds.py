"""Two Kubernetes clusters, each with its own operator, in one thread on one clock."""

from collections.abc import Callable

from kube.objects import Json
from member.context import Settings
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from sandbox.actor_system import NeverSettles
from tests.operator_world import NAMESPACE, OperatorWorld, sample

NORTH, SOUTH = "north.example.com", "south.example.com"
"""The domains of the two."""


class JoinedWorlds:
    """Two worlds whose pods reach each other by names under the domains."""

    def __init__(self, *, clock: FakeClock | None = None, settings: Settings = SETTINGS) -> None:
        self.clock = clock or FakeClock()
        self.north = OperatorWorld(clock=self.clock, settings=settings, domain=NORTH)
        self.south = OperatorWorld(clock=self.clock, settings=settings, domain=SOUTH, beside=self.north, seed=2)
        self._both = (self.north, self.south)

    def stop(self) -> None:
        """End both."""
        for each in self._both:
            each.stop()

    def run_until(self, condition: Callable[[], bool], within: float = 120.0) -> None:
        """Run worlds and operators until `condition` holds. Raises NeverSettles after `within` seconds."""
        end = self.clock.now() + within
        while True:
            self._work()
            if condition():
                return
            if self.clock.now() >= end:
                said = "; ".join(each.progressing for each in self._both)
                raise NeverSettles(f"the condition did not hold within {within} s; {said}")
            self._advance(end)

    def run(self, seconds: float) -> None:
        """Run both for some time."""
        end = self.clock.now() + seconds
        self.run_until(lambda: self.clock.now() >= end, seconds)

    def run_until_ready(self, within: float = 120.0) -> None:
        """Run them until all clusters are Ready and no work is left."""
        self.run_until(lambda: all(_rests(each) for each in self._both), within)

    def _work(self) -> None:
        """Run everything that is due at this instant, in both; the work of one operator may concern the other."""
        for each in self._both:
            each.operator.work()
        if self._has_news():
            self._work()

    def _has_news(self) -> bool:
        return any(each.operator.has_news() for each in self._both)

    def _advance(self, end: float) -> None:
        timers = (each.operator.timers.next_due() for each in self._both)
        due = min((each for each in timers if each is not None), default=end)
        self.north.world.advance(max(min(due, end) - self.clock.now(), 0.0), self._has_news)


def _rests(world: OperatorWorld) -> bool:
    return all(world.is_ready(name) and world.reason(name) == "Done" for name in world.names())


def across(name: str, domain: str, joins: str = "", **replicas: int) -> Json:
    """A cluster across Kubernetes with this many pods per component, in the Kubernetes cluster of a domain.

    `joins`: the domain of the other Kubernetes, whose cluster `basic` it joins.
    """
    cluster = sample("basic")
    spec = cluster["spec"]
    cluster["metadata"]["name"] = name
    spec |= {"acrossK8s": True, "clusterDomain": domain}
    for component in ("pd", "tikv", "tidb"):
        if count := replicas.get(component):
            spec[component]["replicas"] = count
        else:
            del spec[component]
    if joins:
        spec["cluster"] = {"name": "basic", "namespace": NAMESPACE, "clusterDomain": joins}
    return cluster
