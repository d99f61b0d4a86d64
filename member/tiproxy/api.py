"""Access to the API of TiProxy's pods."""

from dataclasses import dataclass, replace

from dataplane.tiproxy import API_PORT, TiProxyClient
from dataplane.tls import TlsMaterial
from member import api_clients
from member.context import ReconcileContext
from member.naming import tidb_server_secret
from member.tiproxy.certificates import serves_api_with_tidbs_certificate


@dataclass(frozen=True, slots=True)
class TiProxies:
    """The proxies of one cluster, in one reconcile; `tls` where they show other certificates than the cluster's."""

    ctx: ReconcileContext
    tls: TlsMaterial | None

    def client(self, pod: str) -> TiProxyClient:
        """A client for one proxy. Raises BadTlsMaterial."""
        return TiProxyClient(api_clients.caller(self.ctx, "tiproxy", pod, API_PORT, self.tls))


def proxies(ctx: ReconcileContext) -> TiProxies:
    """The API of the cluster's proxies (objects.md 9.3).

    One that shows the certificate of TiDB's MySQL port is trusted by the authority of that, under any name: the
    certificate is made for TiDB's names. v1.6 trusts anybody. Raises BadTlsMaterial.
    """
    if not serves_api_with_tidbs_certificate(ctx.tc):
        return TiProxies(ctx, None)
    material = api_clients.tls_from_secret(ctx, tidb_server_secret(ctx.tc), "spec.tidb.tlsClient.enabled")
    return TiProxies(ctx, replace(material, checks_names=False))
