"""The present status of TiDB (lifecycle.md 5.5). Reads only."""

from collections.abc import Mapping
from datetime import datetime

from apis.component_statuses import TiDBMember
from dataplane.errors import BadTlsMaterial
from member import api_clients
from member.context import ReconcileContext
from member.observed.pod import Pod
from member.observed.status import ask_all, observe_pods, server_pods, transition_time
from member.outcome import Done, Failed, Outcome
from member.tidb.failover import ignored_pods


def observe(ctx: ReconcileContext) -> Outcome:
    """Update `status.tidb`. A server without a running pod is not asked: it cannot be healthy."""
    if ctx.tc.spec.tidb is None:
        return Done()
    status = ctx.status.tidb
    pods = observe_pods(ctx, "tidb", status, ignored_pods(ctx))
    if pods is None:
        status.members = {}
        return Done()
    names = server_pods(ctx, "tidb", pods)
    try:
        status.members = _members(ctx, names, {pod.metadata.name: pod.decode_as(Pod) for pod in pods})
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    return Done()


def _members(ctx: ReconcileContext, names: list[str], pods: Mapping[str, Pod]) -> dict[str, TiDBMember]:
    """The present state of every server."""
    clock, before = ctx.deps.clock, ctx.status.tidb.members

    running = [name for name in names if (pod := pods.get(name)) and pod.has_started("tidb")]
    servers = {name: api_clients.tidb(ctx, name) for name in running}

    def ask(name: str, timeout: float) -> TiDBMember:
        health = name in servers and servers[name].healthy(timeout)
        return _member(name, health, pods.get(name), before.get(name), clock.wall())

    return ask_all(ctx, names, ctx.status.tidb.servers, ask)


def _member(name: str, health: bool, pod: Pod | None, old: TiDBMember | None, now: datetime) -> TiDBMember:
    node = pod.spec.node_name if pod else ""
    return TiDBMember(
        name=name,
        health=health,
        node=node or (old.node if old else ""),
        last_transition_time=transition_time(old, old is not None and old.health == health, now),
    )
