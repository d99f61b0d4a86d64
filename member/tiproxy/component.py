"""TiProxy: starts and restarts independently of other components (lifecycle.md 5.7, 6.3, 7.8)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from apis import predicates
from apis.component_statuses import TiProxyMember
from apis.tidbcluster import TidbCluster
from dataplane.errors import BadTlsMaterial
from dataplane.tiproxy import API_PORT, TiProxyClient
from dataplane.tls import TlsMaterial
from kube.objects import Object
from member import api_clients
from member.actions import SetServerLabels
from member.context import ReconcileContext
from member.lifecycle.rolling import Rolling
from member.lifecycle.workload import Workload
from member.naming import tidb_server_secret
from member.observed.pods import started_pods
from member.observed.status import ask_all, observe_pods, server_pods, transition_time
from member.outcome import Done, Failed, Outcome, Refused, Waiting
from member.polling import next_poll
from member.tiproxy import desired


def _observe(ctx: ReconcileContext) -> Outcome:
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
    clock, before, all_proxies = ctx.deps.clock, ctx.status.tiproxy.members, _proxies(ctx)
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
class _TiProxies:
    """The proxies of one cluster in one reconcile; `tls` is set if their certificates are not the cluster's."""

    ctx: ReconcileContext
    tls: TlsMaterial | None

    def client(self, pod: str) -> TiProxyClient:
        """A client for one proxy. Raises BadTlsMaterial."""
        return TiProxyClient(api_clients.caller(self.ctx, "tiproxy", pod, API_PORT, self.tls))


def _proxies(ctx: ReconcileContext) -> _TiProxies:
    """A client factory for the cluster's proxies (objects.md 9.3).

    If the API uses the certificate of TiDB's MySQL port, the client trusts that certificate's CA and accepts any name,
    because the certificate has TiDB's names. v1.6 verifies nothing. Raises BadTlsMaterial.
    """
    if not desired.serves_api_with_tidbs_certificate(ctx.tc):
        return _TiProxies(ctx, None)
    material = api_clients.tls_from_secret(ctx, tidb_server_secret(ctx.tc), "spec.tidb.tlsClient.enabled")
    return _TiProxies(ctx, replace(material, checks_names=False))


async def _gate(ctx: ReconcileContext) -> Refused | None:
    return across_kubernetes(ctx.tc)


def across_kubernetes(tc: TidbCluster) -> Refused | None:
    """The refusal of TiProxy in a cluster across Kubernetes, a pure function of the spec."""
    if tc.spec.tiproxy is None or not tc.spec.across_k8s:
        return None
    what = "spec.tiproxy is set, but TiProxy cannot be part of a cluster across Kubernetes"
    return Refused("AcrossKubernetes", f"{what}; remove it, or set spec.acrossK8s to false")


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    """Without a probe a pod is Ready before it serves: v1.6 restarts the next one then."""
    member = ctx.status.tiproxy.members.get(pod.metadata.name)
    return "" if member and member.health else "serves"


def _serving(ctx: ReconcileContext) -> Outcome:
    members = ctx.status.tiproxy.members
    if predicates.all_members_ready(ctx.tc, "tiproxy"):
        return Done(f"{len(members)} of {len(members)} proxies are healthy")
    ill = ", ".join(name for name, member in members.items() if not member.health)
    return Waiting("TiProxyUnhealthy", f"waiting for {ill or 'all proxies'} to be healthy", next_poll(ctx, "tiproxy"))


def _locate(ctx: ReconcileContext, pod: str, labels: Mapping[str, str]) -> SetServerLabels:
    return SetServerLabels(_proxies(ctx).client(pod), labels)


ROLLING = Rolling(unmet_condition=_unmet_condition)

TIPROXY = Workload(
    name="tiproxy",
    observe=_observe,
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=_serving,
    rolling=ROLLING,
    locate=_locate,
    as_built_by_v16=desired.as_built_by_v16,
)
