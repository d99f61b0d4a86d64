"""The present status of Pump (lifecycle.md 5.7). Reads only; nodes register in PD's etcd."""

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
"""The state of a node that is registered as online although its pod does not run."""


def observe(ctx: ReconcileContext) -> Outcome:
    """Update `status.pump`. An old list of nodes is dropped, because no field of the status marks it as old.

    The list has the nodes of the StatefulSet's pods only: a node stays registered forever after it has left. A node
    that ended without an update also stays registered as online; its state is shown as unknown while its pod does not
    run.
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
    """The present nodes of this cluster's pods, each with the ordinal of its pod. Raises DataPlaneError."""
    book = address_book(ctx.tc)
    owned = ((book.pump_ordinal(node.host), node) for node in api_clients.pump_nodes(ctx))
    return sorted(((ordinal, node) for ordinal, node in owned if ordinal is not None), key=lambda each: each[0])


def is_online(ctx: ReconcileContext, pod: str) -> bool:
    """True if a pod's node was online when this reconcile read the nodes."""
    members = ctx.status.pump.members
    return any(member.host.partition(".")[0] == pod and member.state == PUMP_ONLINE for member in members)
