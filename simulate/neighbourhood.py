"""Judges several TidbClusters of one world: each by the invariants, for the writes that are about it.

A sync of one cluster is to change nothing of another one. Clusters that are joined share their PD, and with it members
and stores.
"""

from collections.abc import Collection, Sequence

from ports.transport import Response
from simulate.calls import Call
from simulate.components import cluster_of
from simulate.judge import Invariants
from simulate.write_addresses import Address


class Neighbourhood:
    """The judges of all clusters of a plan; the first is that of the cluster that the plan is about."""

    def __init__(self, judges: Sequence[Invariants]) -> None:
        self._judges = judges

    def sent(self, addresses: Collection[Address]) -> None:
        """See `Judge`."""
        for each in self._judges:
            each.sent(addresses)

    def before(self, call: Call) -> None:
        """See `Judge`."""
        hit = [each for each in self._judges if each.state.concerns(call)]
        # a PD may be that of several
        own = [each for each in hit if each.state.key == cluster_of(call.key)]
        for each in own or hit:
            each.before(call)
        if call.key and hit and not own:
            self.report("neighbour", f"{call}, in a sync of {call.key}, changes what is of {hit[0].state.key}")

    def after(self, call: Call, answer: Response | None) -> None:
        """See `Judge`."""
        for each in self._judges:
            each.after(call, answer)

    def step(self) -> None:
        """See `Judge`."""
        for each in self._judges:
            each.step()

    def report(self, rule: str, what: str) -> None:
        """See `Judge`."""
        self._judges[0].report(rule, what)
