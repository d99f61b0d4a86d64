"""Nodes as decisions read them, the pods that they keep, and what runs in a pod. Reads caches only.

A pod that is not Ready may still vote and serve. Only the kubelet of its node knows what runs in it. When a kubelet
cannot reach the API server, the status of its pods shows the past. So what runs in a pod decides whether it may go
while the data plane is silent (docs/rules/silence.md).
"""

from collections.abc import Container
from enum import Enum

import msgspec

from kube.objects import Object
from member.context import ClusterContext
from member.observed.pod import Pod
from member.observed.pods import is_controlled_by, pods_of, wanted_pods
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


class Activity(Enum):
    """What the operator knows of a container.

    UNHEARD: the kubelet does not report. RUNNING: the kubelet reports a process, or one that is about to start.
    STOPPED: the kubelet reports that no process runs now. NEVER_STARTED: no process has ever run in this pod.
    """

    UNHEARD = "is not heard of"
    RUNNING = "runs"
    STOPPED = "does not run"
    NEVER_STARTED = "has never started"

    @property
    def is_none(self) -> bool:
        """True if nothing runs: the pod casts no vote and serves no data now."""
        return self in (Activity.STOPPED, Activity.NEVER_STARTED)


def activity(pod: Pod, container: str, node: NodeState | None) -> Activity:
    """The activity of a container; pure.

    `node` is the state of the pod's node: UNKNOWN if the node has no object, None if the operator may not read nodes.
    With None only the conditions of the pod count, which show when the control plane has lost its kubelet.
    """
    if not pod.spec.node_name:
        return Activity.NEVER_STARTED
    if pod.is_marked_unheard or node not in (NodeState.READY, None):
        return Activity.UNHEARD
    if pod.is_running(container):
        return Activity.RUNNING
    return Activity.STOPPED if pod.has_started(container) else Activity.NEVER_STARTED


def cached_activity(ctx: ClusterContext, container: str, pod: Object) -> Activity:
    """The activity of a container according to the caches; `member.evidence.stopped` reads it live."""
    node = None if ctx.listers.nodes is None else node_state(ctx, pod)
    return activity(pod.decode_as(Pod), container, node)
