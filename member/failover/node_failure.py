"""Failover of a member whose machine is down for good (lifecycle.md 9.5). Only with --detect-node-failure.

The failure of the host is noted in the member's record → with the user's annotation, the pod is deleted by force, as no
kubelet can stop it. If its successor does not recover in time, its volumes may be deleted.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from apis.component_statuses import PDFailureMember
from apis.shared import TiKVFailureStore
from apis.times import parse_time
from kube.actions import Emit
from kube.deletion import Destroyer, LiveObject
from kube.events import WARNING
from kube.resources import NODES, PODS
from member.actions import Delete
from member.context import ClusterContext
from member.evidence import Evidence, look_up, shown_by
from member.failover.witnesses import Failing
from member.labels import AUTO_FAILURE_RECOVERY
from member.observed.nodes import Node, NodeState
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Waiting
from member.polling import next_poll

Record = PDFailureMember | TiKVFailureStore

STORE_DOWN_TIME_EXCEEDED = "StoreDownTimeExceeded"
NODE_FAILURE = "NodeFailure"
RO_DISK_FOUND = "RODiskFound"

_SUCCESSOR_TIME = 600.0
"""Seconds that the successor of a force-deleted pod has to bring the member back."""

_CLOCKS_DIFFER = timedelta(seconds=30)
"""The largest difference between the clocks of the API server, which dates pods, and of the operator."""


def host_failure(component: str, pod: Pod, node: Node | None, lasted: float, hard_period: float) -> str:
    """The reason why a failing member's host counts as down; empty if it does not. Times are in seconds."""
    if 0 < hard_period < lasted:
        return STORE_DOWN_TIME_EXCEEDED
    if pod.status.phase == "Unknown":
        return NODE_FAILURE
    if node is None or not pod.has_started(component):
        return ""
    if not pod.is_ready and node.state is NodeState.NOT_READY:
        return NODE_FAILURE
    return RO_DISK_FOUND if pod.is_ready and node.holds(RO_DISK_FOUND) else ""


async def handle_failed_hosts(
    ctx: ClusterContext, component: str, records: Mapping[str, Record], failing: Sequence[Failing]
) -> Waiting | None:
    """Note which hosts are down, then force-delete their pods; None if the failover can continue.

    Raises ApiError, TransportError, LeaseExpired.
    """
    if not ctx.settings.failover.detect_node_failure:
        return None
    if not any(record.host_down for record in records.values()):
        return _note(ctx, component, records, failing)
    if not is_automatic(ctx):
        return None
    for record in records.values():
        if record.host_down and (waiting := await _force(ctx, component, record)):
            return waiting
    return None


def is_automatic(ctx: ClusterContext) -> bool:
    """True if the user allows the operator to complete the recovery without confirmation."""
    return ctx.tc.metadata.annotations.get(AUTO_FAILURE_RECOVERY) == "true"


def automatic_or_wait(ctx: ClusterContext) -> Evidence | Waiting:
    """Evidence from a live read that the user allows an automatic recovery, or the wait for an outdated cache.

    Raises ApiError, TransportError.
    """
    seen = look_up(ctx, ctx.resource, ctx.name, ctx.namespace)
    if isinstance(seen, Evidence) or seen.object.metadata.annotations.get(AUTO_FAILURE_RECOVERY) != "true":
        return Waiting(
            "CacheOutdated", f"waiting for the operator's cache to show that {AUTO_FAILURE_RECOVERY} was removed", 0.5
        )
    return shown_by(seen, "the user allows the operator to complete the recovery")


def wait_for_replacement(ctx: ClusterContext, component: str, record: Record) -> Waiting | None:
    """The wait for the successor of a lost pod, as long as it may still bring the member back."""
    if not record.host_down:
        return None
    pod = next((each for each in pods_of(ctx, component) if each.metadata.name == record.pod_name), None)
    created = parse_time((pod and pod.metadata.creation_timestamp) or "")
    if pod is None or created is None or not _is_after(created, record):
        what = f"the host of pod {record.pod_name} is down; waiting for the pod to be recreated on another node"
        return Waiting("HostDown", what, next_poll(ctx, component))
    age = ctx.memory.stopwatches.look("recreated", pod.metadata.uid, ctx.deps.clock).seconds
    if age >= _SUCCESSOR_TIME:
        return None
    what = f"pod {record.pod_name} was recreated after its host went down; giving it 10 min to recover"
    return Waiting("HostDown", what, _SUCCESSOR_TIME - age)


def _note(
    ctx: ClusterContext, component: str, records: Mapping[str, Record], failing: Sequence[Failing]
) -> Waiting | None:
    lasted = {each.pod: each.lasted for each in failing}
    pods = {pod.metadata.name: pod.decode_as(Pod) for pod in pods_of(ctx, component)}
    hard_period, found = ctx.settings.failover.pod_hard_recovery_period, []
    for record in records.values():
        name = record.pod_name
        if name not in lasted or name not in pods or not record.pvc_uid_set:
            continue
        if why := host_failure(component, pods[name], _cached_node(ctx, pods[name]), lasted[name], hard_period):
            record.host_down = True
            found.append(f"{name} ({why})")
    if not found:
        return None
    return Waiting("HostDown", f"the hosts of these pods are down: {', '.join(found)}")


async def _force(ctx: ClusterContext, component: str, record: Record) -> Waiting | None:
    """Force-delete the pod of a lost machine, unless it is younger than the record and therefore the successor."""
    found = Destroyer(ctx.deps.client).observe(PODS, record.pod_name, ctx.namespace)
    if found is None:
        return None
    created = parse_time(found.object.metadata.creation_timestamp or "")
    if created is None or _is_after(created, record):
        return None
    lost = _node_is_lost(ctx, found)
    if lost is None:
        return None
    allowed = automatic_or_wait(ctx)
    if isinstance(allowed, Waiting):
        return allowed
    await Delete(found, lost & allowed, propagation="Background", grace_period_seconds=0)
    what = f"pod {record.pod_name} was force-deleted: its node is down"
    await Emit(ctx.owner, WARNING, NODE_FAILURE, what)
    return Waiting("HostDown", f"{what}; waiting for its replacement", next_poll(ctx, component))


def _node_is_lost(ctx: ClusterContext, pod: LiveObject) -> Evidence | None:
    """Evidence from a live read that a pod's node is gone or not Ready, the condition for deleting the pod by force."""
    name = pod.object.decode_as(Pod).spec.node_name
    if not name or ctx.listers.nodes is None:
        return None
    node = look_up(ctx, NODES, name)
    if isinstance(node, Evidence):
        return node
    is_ready = node.object.decode_as(Node).state is not NodeState.NOT_READY
    return None if is_ready else shown_by(node, f"node {name} is not Ready")


def _cached_node(ctx: ClusterContext, pod: Pod) -> Node | None:
    nodes = ctx.listers.nodes
    node = nodes.get("", pod.spec.node_name) if nodes and pod.spec.node_name else None
    return node.decode_as(Node) if node else None


def _is_after(created: datetime, record: Record) -> bool:
    """True if a pod may be the successor: it was created after its record, or shortly before, as clocks may differ.

    A lost pod that is mistaken for a successor delays the failover by the successor's time at most.
    """
    recorded = parse_time(record.created_at or "")
    return recorded is not None and created >= recorded - _CLOCKS_DIFFER
