"""The present status of TiProxy (lifecycle.md 5.7). Reads only."""

from apis.component_statuses import TiProxyMember
from dataplane.errors import BadTlsMaterial
from member.context import ReconcileContext
from member.observed.asking import ask_all
from member.observed.pods import started_pods
from member.observed.status import observe_pods, server_pods, transition_time
from member.outcome import Done, Failed, Outcome
from member.tiproxy.api import proxies


def observe(ctx: ReconcileContext) -> Outcome:
    """Update `status.tiproxy`. A proxy without a running pod is not asked: it cannot be healthy."""
    status = ctx.status.tiproxy
    status.synced = False
    pods = observe_pods(ctx, "tiproxy", status)
    if pods is None:
        status.members = {}
        return Done()
    running = started_pods(pods, "tiproxy")
    names = server_pods(ctx, "tiproxy", pods)
    try:
        status.members = _members(ctx, names, running)
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    status.synced = True
    return Done()


def _members(ctx: ReconcileContext, names: list[str], running: set[str]) -> dict[str, TiProxyMember]:
    """The present state of every proxy; the last info of a proxy stays while it is unhealthy.

    A proxy that only lacks a TiDB counts as healthy while no TiDB is healthy: replacing the proxy would not help.
    """
    clock, before, all_proxies = ctx.deps.clock, ctx.status.tiproxy.members, proxies(ctx)
    clients = {name: all_proxies.client(name) for name in names if name in running}
    servers = any(each.health for each in ctx.status.tidb.members.values())

    def ask(name: str, timeout: float) -> TiProxyMember:
        says = clients[name].health(timeout) if name in clients else None
        old, health = before.get(name), says is not None and (says.serves or not servers)
        info = f"{says.info}\n" if says is not None and health else old.info if old else ""
        changed = transition_time(old, old is not None and old.health == health, clock.wall())
        return TiProxyMember(name=name, health=health, info=info, last_transition_time=changed)

    return ask_all(ctx, names, ctx.status.tiproxy.servers, ask)
