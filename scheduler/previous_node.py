"""The return of a TiDB pod to its previous node (`StableScheduling`, scheduler-deployment.md 2.7). Pure.

Clients may depend on the node, e.g. through a load balancer with the traffic policy `Local`.
"""

from collections.abc import Sequence

from apis.tidbcluster import TidbCluster
from scheduler.protocol import Answer


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
