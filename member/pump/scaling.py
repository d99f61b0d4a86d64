"""The scale-in of Pump: a node closes, drainers read its remaining binlogs, then its pod goes (8.8)."""

from dataplane.errors import Conflict, Unavailable
from dataplane.pump import PUMP_CLOSING, PUMP_OFFLINE, PUMP_ONLINE, LivePumpNode
from kube.objects import Object
from member import api_clients
from member.actions import ClosePumpNode
from member.evidence import Evidence, pods_live, pump_node_gone, spec_or_wait
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scaling import ScaleIn
from member.lifecycle.stateless import scale_in_parallelism
from member.observed.pod import Pod
from member.outcome import Refused, Waiting
from member.polling import next_poll
from member.pump.status import own_nodes

_REGISTRATION = 30.0
"""Seconds in which a running Pump should register its node; it does so every two seconds."""

_ASK_AGAIN = 30.0
"""Seconds until the next request to a Pump that has rejected one, or that was silent."""

_GIVE_UP = "if it can never be online again, and its binlogs may be lost, set its state to offline with binlogctl"


async def _drain(removal: PodRemoval) -> Evidence | Waiting | Refused:
    ctx = removal.ctx
    nodes = own_nodes(ctx)
    node = _node_of(nodes, removal.ordinal)
    if node is None:
        return _unregistered(removal)
    if node.state == PUMP_OFFLINE:
        return pump_node_gone(ctx, removal.name) or _unknown(removal)
    if node.state == PUMP_ONLINE:
        others = [ordinal for ordinal, each in nodes if ordinal in removal.staying and each.state == PUMP_ONLINE]
        return _still_needed(removal, others) or await _close(removal, node)
    return _waiting(removal, node)


def _still_needed(removal: PodRemoval, others: list[int]) -> Waiting | Refused | None:
    """Why no Pump may leave: no remaining one is online, and TiDB cannot commit without one."""
    ctx = removal.ctx
    writers = [pod.metadata.name for pod in pods_live(ctx, "tidb").pods if _writes_binlogs(pod)]
    if others or not writers:
        return None
    what = f"keeping pod {removal.name}: no Pump node that stays is online, and {', '.join(writers)} writes binlogs"
    if removal.staying.replicas:
        return Waiting("ScalingIn", what, _soon(removal))
    way_out = (
        "set spec.pump.replicas to 1 and spec.tidb.binlogEnabled to false; scale Pump in to 0 once all TiDB pods have "
        "been restarted"
    )
    return Refused("FailedScaleIn", f"{what}; {way_out}", _ASK_AGAIN)


def _writes_binlogs(pod: Object) -> bool:
    """True if a TiDB pod was started with binlogs enabled."""
    containers = pod.decode()["spec"]["containers"]
    variables = [
        entry for container in containers if container["name"] == "tidb" for entry in container.get("env") or ()
    ]
    return {"name": "BINLOG_ENABLED", "value": "true"} in variables


async def _close(removal: PodRemoval, node: LivePumpNode) -> Waiting | Refused:
    ctx = removal.ctx
    wanted = spec_or_wait(ctx, _soon(removal))
    if isinstance(wanted, Waiting):
        return wanted
    if removal.pod is None or not removal.pod.decode_as(Pod).is_ready:
        return _out_of_reach(removal, node, "its pod is not Ready")
    await removal.note()
    try:
        await ClosePumpNode(api_clients.pump(ctx, removal.ordinal), node, wanted)
    except Conflict as refused:
        return Refused("FailedScaleIn", f"Pump node {node.id} of pod {removal.name}: {refused}", _ASK_AGAIN)
    except Unavailable as silent:
        return _out_of_reach(removal, node, str(silent))
    return Waiting("ScalingIn", f"Pump node {node.id} of pod {removal.name} was asked to close", _soon(removal))


def _out_of_reach(removal: PodRemoval, node: LivePumpNode, why: str) -> Refused:
    """The refusal if a node cannot be closed: only this node has the binlogs that drainers have not read."""
    what = f"Pump node {node.id} of pod {removal.name} cannot be asked to close: {why}"
    return Refused("PumpUnreachable", f"{what}; bring it back; {_GIVE_UP}", _ASK_AGAIN)


def _waiting(removal: PodRemoval, node: LivePumpNode) -> Waiting:
    what = f"Pump node {node.id} of pod {removal.name} is {node.state}"
    if node.state == PUMP_CLOSING:
        return Waiting("ScalingIn", f"{what}; waiting until drainers have read all its binlogs", _soon(removal))
    way_out = f"waiting until it is online again before it is closed; {_GIVE_UP}"
    return Waiting("ScalingIn", f"{what}; {way_out}", _soon(removal))


def _unregistered(removal: PodRemoval) -> Evidence | Waiting:
    """The wait for a running pod to register a node (8.8). A pod that has not started registers none."""
    ctx = removal.ctx
    if removal.pod is not None and removal.pod.decode_as(Pod).has_started("pump"):
        key = f"{removal.name} {removal.pod.metadata.uid}"
        left = _REGISTRATION - ctx.memory.stopwatches.look("pump without node", key, ctx.deps.clock).seconds
        if left > 0:
            what = f"pod {removal.name} is running but has no Pump node; removing it unless one registers"
            return Waiting("ScalingIn", f"{what} within {left:.0f} s", min(_soon(removal), left))
    return pump_node_gone(ctx, removal.name) or _unknown(removal)


async def _cancel(removal: PodRemoval) -> Evidence | Waiting | None:
    """Keep a node that was about to be closed; a node that is closing cannot be reopened (F36)."""
    ctx = removal.ctx
    node = _node_of(own_nodes(ctx), removal.ordinal)
    if node is None or node.state == PUMP_OFFLINE:
        return pump_node_gone(ctx, removal.name) or _unknown(removal)
    if node.state == PUMP_CLOSING:
        return _waiting(removal, node)
    await removal.clear()
    return None


def _node_of(nodes: list[tuple[int, LivePumpNode]], ordinal: int) -> LivePumpNode | None:
    return next((node for owner, node in nodes if owner == ordinal), None)


def _unknown(removal: PodRemoval) -> Waiting:
    what = f"waiting for PD to report the Pump node of pod {removal.name} before removing the pod"
    return Waiting("PumpNodesUnknown", what, _soon(removal))


def _soon(removal: PodRemoval) -> float:
    return next_poll(removal.ctx, "pump")


SCALE_IN = ScaleIn(scale_in_parallelism, _drain, _cancel)
