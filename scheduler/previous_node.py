"""A TiDB pod goes back to its node (`StableScheduling`, scheduler-deployment.md 2.7). Pure.

Clients may be bound to nodes, as behind a load balancer whose traffic policy is `Local`.
"""

from collections.abc import Sequence

from apis.tidbcluster import TidbCluster
from scheduler.protocol import Answer


def back_to_previous_node(tc: TidbCluster | None, pod: str, nodes: Sequence[str]) -> tuple[Answer, str]:
    """The node where the status saw the pod, else all of `nodes` and why."""
    member = tc.status.tidb.members.get(pod) if tc is not None else None
    previous = member.node if member is not None else ""
    if not previous:
        return Answer(nodes), ""
    if previous not in nodes:
        return Answer(nodes), f"cannot run {pod} on its previous node {previous!r}"
    others = (node for node in nodes if node != previous)
    return Answer((previous,), dict.fromkeys(others, f"{pod} returns to its node {previous!r}")), ""
