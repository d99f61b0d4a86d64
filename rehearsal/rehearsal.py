"""A world with one operator, in which objects are applied and time passes.

One seed is one run: nothing depends on the machine's clock or on threads.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from kube.client import Client
from member.context import Settings
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.operator import Operator
from rehearsal.world import new_world
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings


class Rehearsal:
    """A world and its operator. Use it as a context manager, which ends the world's threads."""

    def __init__(self, nodes: Iterable[NodeSpec], timings: Timings, settings: Settings, began: datetime) -> None:
        """`began`: the time of day at the beginning, by which certificates are valid or not."""
        self.clock = FakeClock(began)
        self.world = new_world(self.clock, SeededRandomness(1), timings, nodes)
        self.admin: Client = self.world.client()
        self._operator = Operator(self.world, self.clock, 1, settings=settings)

    def __enter__(self) -> "Rehearsal":
        return self

    def __exit__(self, *_: object) -> None:
        self.world.stop()

    def run(self, is_over: Callable[[], bool], within: float, look: Callable[[], None] = lambda: None) -> bool:
        """Let time pass until `is_over`; True if that happened within so many seconds.

        `look` is called at every moment at which the operator has done its work.
        """
        end = self.clock.now() + within
        while True:
            self._operator.work()
            look()
            if is_over():
                return True
            if self.clock.now() >= end:
                return False
            due = self._operator.timers.next_due()
            until = end if due is None else min(due, end)
            self.world.advance(max(until - self.clock.now(), 0.0), self._operator.has_news)
