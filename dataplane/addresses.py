"""Every name and port the operator dials, and the names the components advertise (dataplane-apis.md 1).

Two forms of a name must not be confused. Dialled: short, `demo-pd.ns`, and with a cluster domain
`demo-pd.ns.svc.<domain>`. Advertised, that is, what PD stores and tells others: always with `svc`,
`demo-pd-0.demo-pd-peer.ns.svc[.<domain>]`.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

PD_CLIENT_PORT = 2379
PD_PEER_PORT = 2380
TIKV_SERVER_PORT = 20160
TIKV_STATUS_PORT = 20180
TIDB_SERVER_PORT = 4000
TIDB_STATUS_PORT = 10080
DISCOVERY_PORT = 10261
DISCOVERY_PROXY_PORT = 10262


@dataclass(frozen=True, slots=True)
class AddressBook:
    """The names of one TidbCluster."""

    cluster: str
    namespace: str
    cluster_domain: str = ""
    tls: bool = False

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "https" if self.tls else "http"

    def pd(self) -> str:
        """The URL of PD's Service (A1)."""
        return self._url(f"{self.cluster}-pd", PD_CLIENT_PORT)

    def pd_peers(self) -> str:
        """The URL of PD's headless Service, which heterogeneous clusters across Kubernetes dial (A2)."""
        return self._url(f"{self.cluster}-pd-peer", PD_CLIENT_PORT)

    def pd_member(self, ordinal: int) -> str:
        """The client URL that member `ordinal` advertises (A3)."""
        return f"{self.scheme}://{self.advertised_host('pd', ordinal)}:{PD_CLIENT_PORT}"

    def tikv_status(self, ordinal: int) -> str:
        """The status URL of a TiKV (A7)."""
        return self._url(self._peer("tikv", ordinal), TIKV_STATUS_PORT)

    def tidb_status(self, ordinal: int) -> str:
        """The status URL of a TiDB (A9)."""
        return self._url(self._peer("tidb", ordinal), TIDB_STATUS_PORT)

    def advertised_host(self, component: str, ordinal: int) -> str:
        """The host name that a pod of a component (`pd`, `tikv`, `tidb`) advertises."""
        return f"{self._peer(component, ordinal)}.{self.namespace}.svc{self._suffix()}"

    def pd_member_names(self, ordinal: int) -> tuple[str, str]:
        """The names by which PD may know a member: its host name, or its pod name (lifecycle.md 4.1)."""
        return self.advertised_host("pd", ordinal), f"{self.cluster}-pd-{ordinal}"

    def ordinal_of(self, component: str, address: str) -> int | None:
        """The ordinal of this cluster's pod that advertises `address`, a URL or `host:port`; None: not ours.

        The whole host is compared, where v1.6 searches for a pattern (lifecycle.md 4.1).
        """
        host, port = _host_and_port(address)
        match = re.fullmatch(rf"{re.escape(self.cluster)}-{component}-(0|[1-9]\d*)", host.partition(".")[0])
        if match is None or port is None:
            return None
        ordinal = int(match[1])
        plain = f"{self._peer(component, ordinal)}.{self.namespace}.svc"
        return ordinal if host in (plain, plain + self._suffix()) else None

    def _peer(self, component: str, ordinal: int) -> str:
        return f"{self.cluster}-{component}-{ordinal}.{self.cluster}-{component}-peer"

    def _suffix(self) -> str:
        return f".{self.cluster_domain}" if self.cluster_domain else ""

    def _url(self, name: str, port: int) -> str:
        host = f"{name}.{self.namespace}"
        if self.cluster_domain:
            host += f".svc.{self.cluster_domain}"
        return f"{self.scheme}://{host}:{port}"


def _host_and_port(address: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return parts.hostname or "", parts.port
    except ValueError:
        return "", None
