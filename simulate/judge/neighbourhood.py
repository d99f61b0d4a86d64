"""Checks several TidbClusters of one world: each against the invariants, for the writes about it.

A sync of one cluster must not change another. Joined clusters share their PD, its members and stores.
"""

from collections.abc import Collection, Sequence

from ports.transport import Response
from simulate.engine.calls import Call
from simulate.engine.components import cluster_of
from simulate.engine.write_addresses import Address
from simulate.judge.judge import Invariants


class Neighbourhood:
    """The judges of a plan's clusters; the first judges the plan's own cluster."""

    def __init__(self, judges: Sequence[Invariants]) -> None:
        self._judges = judges

    def sent(self, addresses: Collection[Address]) -> None:
        for each in self._judges:
            each.sent(addresses)

    def before(self, call: Call) -> None:
        hit = [each for each in self._judges if each.state.concerns(call)]
        # several clusters may share a PD
        own = [each for each in hit if each.state.key == cluster_of(call.key)]
        for each in own or hit:
            each.before(call)
        if call.key and hit and not own:
            self.report("neighbour", f"{call}, in a sync of {call.key}, changes what is of {hit[0].state.key}")

    def after(self, call: Call, answer: Response | None) -> None:
        for each in self._judges:
            each.after(call, answer)

    def step(self) -> None:
        for each in self._judges:
            each.step()

    def report(self, rule: str, what: str) -> None:
        self._judges[0].report(rule, what)
