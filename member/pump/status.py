"""What Pump is like right now (lifecycle.md 5.7). Reads only; PD's etcd is where its nodes register."""

from collections.abc import Collection

from apis.component_statuses import PumpMember
from dataplane.errors import DataPlaneError
from dataplane.pump import PUMP_ONLINE, LivePumpNode
from member import api_clients
from member.context import ReconcileContext
from member.naming import address_book
from member.observed.pod import Pod
from member.observed.status import observe_pods
from member.outcome import Done, Failed, Outcome, Waiting

_UNKNOWN = "unknown"
"""The state of a node that is registered as online and whose pod does not run."""


def observe(ctx: ReconcileContext) -> Outcome:
    """Bring `status.pump` up to date. No field of it tells an old list of nodes from a new one: an old one is dropped.

    Listed are the nodes of the pods that the StatefulSet has: a node that has left stays registered for good. So does
    the word of a node that ended without changing it, for which the state is unknown here while its pod does not run.
    """
    if ctx.tc.spec.pump is None:
        return Done()
    status = ctx.status.pump
    status.members = []
    pods = observe_pods(ctx, "pump", status)
    if pods is None:
        return Done()
    if ctx.tc.spec.pd is not None and not ctx.status.pd.synced:
        return Waiting("PDNotAnswering", "the Pump nodes are unknown while PD does not answer")
    try:
        nodes = own_nodes(ctx)
    except DataPlaneError as error:
        return Failed("PDUnreachable", str(error))
    live = ctx.stateful_set("pump")
    there = live.decode()["spec"].get("replicas", 1) if live else 0
    running = {pod.metadata.name for pod in pods if pod.decode_as(Pod).running_since("pump")}
    status.members = [_member(node, running) for ordinal, node in nodes if ordinal < there]
    return Done()


def _member(node: LivePumpNode, running: Collection[str]) -> PumpMember:
    is_stale = node.state == PUMP_ONLINE and node.host.partition(".")[0] not in running
    return PumpMember(node_id=node.id, host=node.host, state=_UNKNOWN if is_stale else node.state)


def own_nodes(ctx: ReconcileContext) -> list[tuple[int, LivePumpNode]]:
    """The nodes of this cluster's pods as they are now, each with the ordinal of its pod. Raises DataPlaneError."""
    book = address_book(ctx.tc)
    owned = ((book.pump_ordinal(node.host), node) for node in api_clients.pump_nodes(ctx))
    return sorted(((ordinal, node) for ordinal, node in owned if ordinal is not None), key=lambda each: each[0])


def is_online(ctx: ReconcileContext, pod: str) -> bool:
    """Whether a pod's node was online when this reconcile looked."""
    members = ctx.status.pump.members
    return any(member.host.partition(".")[0] == pod and member.state == PUMP_ONLINE for member in members)
