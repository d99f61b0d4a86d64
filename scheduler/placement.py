"""The choice of nodes for a pod (scheduler-deployment.md 2.5 to 2.7). Pure.

`HAScheduling` limits the number of a component's pods in a topology; `StableScheduling` returns a TiDB pod to its
previous node, because its clients may depend on the node, e.g. through a load balancer with the traffic policy `Local`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apis.tidbcluster import TidbCluster
from scheduler.protocol import Answer

PD = "pd"
TIKV = "tikv"

SPREAD_COMPONENTS = frozenset({PD, TIKV})
"""Components that depend on a majority: of PD's members, or of each region's replicas."""

_ENOUGH = 3
"""The number of topologies from which the loss of one leaves a majority of three replicas."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a component's pods.

    `replicas` is the desired number, including substitutes of failed ones. `counts` has the number of pods in each
    candidate topology; `used` is the number of topologies with pods, candidates or not.
    """

    component: str
    replicas: int
    counts: Mapping[str, int]
    used: int

    @property
    def most(self) -> int:
        """The maximum number of pods in one topology; for PD, less than half."""
        if self.component == PD:
            return max((self.replicas + 1) // 2 - 1, 1)
        return 1 if self.used < _ENOUGH else -(-self.replicas // _ENOUGH)

    def choose(self) -> frozenset[str]:
        """The topologies that may get another pod: the emptiest with room, or none."""
        if self.component == TIKV and self.replicas < _ENOUGH:
            return frozenset(self.counts)
        room = {topology: count for topology, count in self.counts.items() if count < self.most}
        fewest = min(room.values(), default=0)
        return frozenset(topology for topology, count in room.items() if count == fewest)

    def refusal(self) -> str:
        """Why `choose` returned none."""
        if not self.counts:
            return "no candidate node has the label of the topology"
        listed = ", ".join(
            f"{topology} ({count} {self.component} pods)" for topology, count in sorted(self.counts.items())
        )
        return f"unable to schedule to topology: {listed}, max pods per topology: {self.most}"


def back_to_previous_node(tc: TidbCluster | None, pod: str, nodes: Sequence[str]) -> tuple[Answer, str]:
    """The node on which the status last saw the pod; else all of `nodes`, with the reason."""
    member = tc.status.tidb.members.get(pod) if tc is not None else None
    previous = member.node if member is not None else ""
    if not previous:
        return Answer(nodes), ""
    if previous not in nodes:
        return Answer(nodes), f"cannot run {pod} on its previous node {previous!r}"
    others = (node for node in nodes if node != previous)
    return Answer((previous,), dict.fromkeys(others, f"{pod} returns to its node {previous!r}")), ""
