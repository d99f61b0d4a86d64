"""Nodes as decisions read them: their Ready condition, and the pods that they keep. Reads caches only."""

from collections.abc import Container
from enum import Enum

import msgspec

from kube.objects import Object
from member.context import ClusterContext
from member.observed.belonging import is_controlled_by
from member.observed.pod import Pod
from member.observed.pods import pods_of, wanted_pods
from member.outcome import Refused
from member.polling import next_poll


class NodeState(Enum):
    """The state of a pod's node. UNKNOWN: the pod has no node, or the operator may not read nodes."""

    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "unknown"


class NodeCondition(msgspec.Struct, frozen=True):
    """A condition of a node."""

    type: str
    status: str


class NodeStatus(msgspec.Struct, frozen=True):
    """The part of a node's status that decisions read."""

    conditions: tuple[NodeCondition, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """The part of a node that decisions read."""

    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def state(self) -> NodeState:
        """READY if the Ready condition is True; NOT_READY otherwise, also without that condition."""
        return NodeState.READY if self.holds("Ready") else NodeState.NOT_READY

    def holds(self, condition: str) -> bool:
        """True if the node has this condition with status True."""
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


def node_state(ctx: ClusterContext, pod: Object | None) -> NodeState:
    """The state of a pod's node; UNKNOWN if the cache does not have it."""
    name = pod.decode_as(Pod).spec.node_name if pod else ""
    node = ctx.listers.nodes.get("", name) if ctx.listers.nodes and name else None
    return node.decode_as(Node).state if node else NodeState.UNKNOWN


def kept_by_lost_nodes(ctx: ClusterContext, component: str, what: str, ignored: Container[str] = ()) -> Refused | None:
    """Why the wait for `what` may never end: terminating pods are on nodes that are not Ready. None if there are none.

    `ignored` contains the names of pods that the wait does not depend on.
    """
    pods = (pod for pod in pods_of(ctx, component) if pod.metadata.name not in ignored)
    leaving = [pod for pod in pods if pod.metadata.deletion_timestamp]
    kept = [pod for pod in leaving if node_state(ctx, pod) is NodeState.NOT_READY]
    if not kept:
        return None
    where = ", ".join(f"pod {pod.metadata.name} on node {pod.decode_as(Pod).spec.node_name}" for pod in kept)
    way_out = "which is not Ready; if the machine is gone for good, delete its Node object"
    # no event reports that PD has given up a store
    return Refused("NodeLost", f"{what}: {where}, {way_out}", next_poll(ctx, component))


def missing_behind_lost_nodes(ctx: ClusterContext, component: str) -> Refused | None:
    """Why Kubernetes creates no pods: pods of an older StatefulSet, on nodes that are not Ready, may never end.

    Kubernetes creates pods in groups by ordinal, and waits while a name in the present group is taken.
    """
    pods, live = pods_of(ctx, component), ctx.stateful_set(component)
    there = {pod.metadata.name for pod in pods}
    missing = [name for name in wanted_pods(ctx, component) if name not in there]
    if not missing or live is None:
        return None
    own = [pod.metadata.name for pod in pods if is_controlled_by(pod, live.metadata.uid)]
    return kept_by_lost_nodes(
        ctx, component, f"{', '.join(missing)} can't be created before these pods have ended", own
    )
