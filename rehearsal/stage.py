"""A world in which a change is rehearsed, and the operator that enters it."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from controllers.queues import REST
from kube.client import Client
from member.context import Settings
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from rehearsal.operator import Operator, Wrap, directly
from rehearsal.polls import Polls
from rehearsal.world import new_world
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings

PACE = 2.0
"""Seconds between two polls of an operator in a rehearsal; changes wake it at once.

Without it and `rehearsal.polls`, the plan of an upgrade of 3/3/2 takes 292 reconciles, not 138.
"""


class CannotRehearse(Exception):
    """Raised if the clusters do not become Ready before the change; the message says why."""


class Stage:
    """A world and its operator. One seed is one run: nothing depends on threads."""

    def __init__(
        self,
        nodes: Iterable[NodeSpec],
        began: datetime,
        timings: Timings,
        seed: int = 1,
        *,
        advanced: bool = False,
        pace: float = 0.0,
    ) -> None:
        """`began`: the time of day at the beginning, by which certificates are valid or not.

        It counts without its fraction: Kubernetes writes whole seconds, so a fraction would change how long waits take.
        For `advanced` see `new_world`, for `pace` `Operator.let_pass`.
        """
        # the renewals of fifty nodes take a tenth of the CPU of a plan, and nothing here reads them
        timings = replace(timings, node_lease_renewal=math.inf)
        self.clock = FakeClock(began.replace(microsecond=0))
        self.world = new_world(self.clock, SeededRandomness(seed), timings, nodes, self._wait, advanced=advanced)
        self.admin: Client = self.world.client()
        self.rest = REST
        """How long the operators that enter from now on rest between two syncs of a key."""
        self._seed = seed
        self._pace = pace
        self._operator: Operator | None = None
        self._polls = self._new_polls()
        self._look: Callable[[], None] = lambda: None
        self._is_new: Callable[[], bool] = lambda: False

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self.world.stop()

    def enter(self, settings: Settings, kubernetes: Wrap = directly, dataplane: Wrap = directly) -> None:
        """Let an operator work, in the place of any earlier one. For `kubernetes` and `dataplane` see `Operator`."""
        polls = self._polls = self._new_polls()
        self._operator = Operator(
            self.world,
            self.clock,
            self._seed,
            kubernetes=kubernetes,
            dataplane=lambda transport: polls.noting(dataplane(transport)),
            watched=polls.watched,
            wait=self._wait,
            settings=settings,
            rest=self.rest,
        )

    def _new_polls(self) -> Polls:
        return Polls(self.clock, lambda: self._operator.changes if self._operator else 0)

    def leave(self) -> None:
        """Let the operator's process end."""
        self._operator = None

    def run(
        self,
        is_over: Callable[[], bool],
        within: float,
        look: Callable[[], None] = lambda: None,
        is_new: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Let time pass until `is_over`; True if that happened within so many seconds.

        `look` is called at every moment at which the operator has done its work, and at which `is_new`; also while the
        operator waits for an answer.
        """
        self._look, self._is_new = look, is_new
        end = self.clock.now() + within
        while True:
            self._work()
            look()
            if is_over():
                return True
            if self.clock.now() >= end:
                return False
            self._let_pass(end, is_new)

    def _work(self) -> None:
        if self._operator is not None:
            self._operator.work()
        else:
            self.world.settle()

    def _let_pass(self, end: float, is_new: Callable[[], bool]) -> None:
        if self._operator is not None:
            self._operator.let_pass(end, is_new, self._pace, self._polls.may_wait)
        else:
            self._advance(end, is_new)

    def _advance(self, end: float, is_new: Callable[[], bool]) -> bool:
        """Let time pass until a change in Kubernetes, or until something `is_new`; False if the time `end` is first."""
        version = self.world.server.storage.version
        changed = lambda: self.world.server.storage.version != version or is_new()  # noqa: E731
        return self.world.advance(max(end - self.clock.now(), 0.0), changed)

    def _wait(self, seconds: float) -> None:
        """Let a caller of a server wait, and look at what happens meanwhile."""
        end = self.clock.now() + seconds
        while self._advance(end, self._is_new):
            self._look()
