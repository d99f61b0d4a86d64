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
