"""The two witnesses of a loss: what the component itself says, and what Kubernetes says (lifecycle.md 9.1).

One alone proves nothing: an operator that is cut off sees all members ill, a pod may be Ready with a dead process.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

import msgspec

from apis import predicates
from apis.accessor import find, workloads
from apis.ordinals import ordinals
from kube.objects import Json, Object
from member import labels
from member.context import ReconcileContext
from member.naming import ordinal_of, pod_name
from member.observed.pods import Pod, pods_of
from member.observed.status import is_rolling
from member.polling import seconds_since

_FORGIVEN = 600.0
"""Seconds that a container has to run until Kubernetes, too, counts its crashes from the beginning."""


class PodState(Enum):
    """A pod, as a witness."""

    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"
    ABSENT = "absent"


class NodeState(Enum):
    """The node of a pod, as a witness. UNKNOWN: it has none, or the operator may not look at nodes."""

    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "unknown"


class NodeCondition(msgspec.Struct):
    """A condition of a node."""

    type: str
    status: str


class NodeStatus(msgspec.Struct):
    """What decisions read of a node's status."""

    conditions: tuple[NodeCondition, ...] = ()


class Node(msgspec.Struct):
    """A node, as far as decisions read it."""

    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def state(self) -> NodeState:
        """Whether it is Ready; what it does not say is no."""
        return NodeState.READY if self.holds("Ready") else NodeState.NOT_READY

    def holds(self, condition: str) -> bool:
        """Whether a condition of it is True."""
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


def is_lost(component_says_so: bool, pod: PodState, node: NodeState) -> bool:
    """Whether a member is lost: the component says so, and so does Kubernetes (9.1, R18)."""
    return component_says_so and (pod is not PodState.READY or node is NodeState.NOT_READY)


@dataclass(frozen=True, slots=True)
class Failing:
    """A member that both witnesses call lost. `lasted`: seconds for which both have, seen by this process (F44)."""

    key: str
    pod: str
    since: datetime
    lasted: float


def failing(ctx: ReconcileContext, component: str, suspects: Mapping[str, str]) -> tuple[Failing, ...]:
    """Which of those that the component calls failed are lost, by ordinal. `suspects`: pod by key, a lasting identity.

    Only pods that the spec asks for count: what failover added is never replaced itself (F39). Neither is a pod that
    our own restart has brought where it is (F12). To be asked once in a reconcile.
    """
    if not suspects:
        ctx.failure_timers.reset(component)
        return ()
    pods = {pod.metadata.name: pod for pod in pods_of(ctx, component)}
    wanted = set(desired_pods(ctx, component))
    live = ctx.stateful_set(component)
    body = live.decode() if live else {}
    lost = {
        key: name
        for key, name in suspects.items()
        if name in wanted
        and not _by_our_own_restart(body, pods.get(name))
        and is_lost(True, testimony(ctx, component, pods.get(name)), node_state(ctx, pods.get(name)))
    }
    seen = ctx.failure_timers.update(component, lost, ctx.deps.clock)
    found = [Failing(key, name, seen[key].since, seen[key].lasted) for key, name in lost.items()]
    return tuple(sorted(found, key=lambda each: ordinal_of(each.pod)))


def desired_pods(ctx: ReconcileContext, component: str) -> list[str]:
    """The pods that the spec alone asks for, by ordinal."""
    spec = find(ctx.tc, component)
    return [pod_name(ctx.tc, component, ordinal) for ordinal in ordinals(spec.workload.replicas)] if spec else []


def pod_state(pod: Object | None) -> PodState:
    """What a pod testifies. One that is being deleted is not Ready."""
    if pod is None:
        return PodState.ABSENT
    seen = pod.decode_as(Pod)
    if seen.status.phase == "Unknown":
        return PodState.UNKNOWN
    return PodState.READY if seen.is_ready and not pod.metadata.deletion_timestamp else PodState.NOT_READY


def testimony(ctx: ReconcileContext, component: str, pod: Object | None) -> PodState:
    """What a pod testifies, unless it merely runs between two crashes: without a probe, Kubernetes calls that Ready."""
    state = pod_state(pod)
    if pod is None or state is not PodState.READY or not _has_crashed_lately(ctx, component, pod):
        return state
    return PodState.NOT_READY


def _has_crashed_lately(ctx: ReconcileContext, component: str, pod: Object) -> bool:
    seen, clock = pod.decode_as(Pod), ctx.deps.clock
    since = seen.running_since(component)
    if not since or not seen.restarts(component):
        return False
    known = ctx.stopwatches.look("crashed", f"{pod.metadata.uid} {since}", clock).seconds
    return known < _FORGIVEN and seconds_since(since, clock.wall()) < _FORGIVEN


def node_state(ctx: ReconcileContext, pod: Object | None) -> NodeState:
    """What the node of a pod testifies; the cache may not know it."""
    name = pod.decode_as(Pod).spec.node_name if pod else ""
    node = ctx.listers.nodes.get("", name) if ctx.listers.nodes and name else None
    return node.decode_as(Node).state if node else NodeState.UNKNOWN


def is_cut_off(ctx: ReconcileContext, component: str) -> bool:
    """Whether more than half of what was asked in this reconcile gave no good answer: then it may be us (F43).

    Servers of other components that are asked one by one say nothing of what PD reports.
    """
    answered: list[bool] = []
    for each in workloads(ctx.tc):
        status = predicates.status_of(ctx.tc, each.name)
        if each.type.replaceable and status is not None and (each.name == component or not status.asked_one_by_one):
            pods = pods_of(ctx, each.name)
            running = {pod.metadata.name for pod in pods if pod.decode_as(Pod).status.phase == "Running"}
            answered += status.answers(running)
    return answered.count(False) * 2 > len(answered)


def _by_our_own_restart(body: Json, pod: Object | None) -> bool:
    """Whether a roll has made or is about to make this pod: it runs the newest revision, or is just away (F12)."""
    if not body or not is_rolling(body):
        return False
    return pod is None or pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) == body["status"]["updateRevision"]
