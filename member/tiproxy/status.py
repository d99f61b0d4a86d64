"""Access to TiProxy's API, and its present status (lifecycle.md 5.7). Reads only."""

from dataclasses import dataclass, replace

from apis.component_statuses import TiProxyMember
from dataplane.errors import BadTlsMaterial
from dataplane.tiproxy import API_PORT, TiProxyClient
from dataplane.tls import TlsMaterial
from member import api_clients
from member.context import ReconcileContext
from member.naming import tidb_server_secret
from member.observed.pods import started_pods
from member.observed.status import ask_all, observe_pods, server_pods, transition_time
from member.outcome import Done, Failed, Outcome
from member.tiproxy.desired import serves_api_with_tidbs_certificate


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
    servers = any(member.health for member in ctx.status.tidb.members.values())

    def ask(name: str, timeout: float) -> TiProxyMember:
        says = clients[name].health(timeout) if name in clients else None
        old, health = before.get(name), says is not None and (says.serves or not servers)
        info = f"{says.info}\n" if says is not None and health else old.info if old else ""
        changed = transition_time(old, old is not None and old.health == health, clock.wall())
        return TiProxyMember(name=name, health=health, info=info, last_transition_time=changed)

    return ask_all(ctx, names, ctx.status.tiproxy.servers, ask)


@dataclass(frozen=True, slots=True)
class TiProxies:
    """The proxies of one cluster in one reconcile; `tls` is set if their certificates are not the cluster's."""

    ctx: ReconcileContext
    tls: TlsMaterial | None

    def client(self, pod: str) -> TiProxyClient:
        """A client for one proxy. Raises BadTlsMaterial."""
        return TiProxyClient(api_clients.caller(self.ctx, "tiproxy", pod, API_PORT, self.tls))


def proxies(ctx: ReconcileContext) -> TiProxies:
    """A client factory for the cluster's proxies (objects.md 9.3).

    If the API uses the certificate of TiDB's MySQL port, the client trusts that certificate's CA and accepts any name,
    because the certificate has TiDB's names. v1.6 verifies nothing. Raises BadTlsMaterial.
    """
    if not serves_api_with_tidbs_certificate(ctx.tc):
        return TiProxies(ctx, None)
    material = api_clients.tls_from_secret(ctx, tidb_server_secret(ctx.tc), "spec.tidb.tlsClient.enabled")
    return TiProxies(ctx, replace(material, checks_names=False))
