"""The names and ports that the operator dials, and the names that components advertise (dataplane-apis.md 1).

Clients dial only an `Address`. Two functions build one: `AddressBook` from the names of a cluster, and `Reach.admit`
from an address that a server announces, after a check that the host belongs to the cluster.

A name has two forms. The operator dials the short one: `demo-pd.ns`, or `demo-pd.ns.svc.<domain>` with a cluster
domain. A component advertises, and PD stores, the long one: `demo-pd-0.demo-pd-peer.ns.svc[.<domain>]`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NewType
from urllib.parse import urlsplit

import msgspec

from dataplane.errors import NotInCluster

PD_CLIENT_PORT = 2379
PD_PEER_PORT = 2380
TIKV_SERVER_PORT = 20160
TIKV_STATUS_PORT = 20180
TIFLASH_SERVICE_PORT = 3930
TIFLASH_PROXY_PORT = 20170
TIFLASH_METRICS_PORT = 8234
TIFLASH_STATUS_PORT = 20292
TIDB_SERVER_PORT = 4000
TIDB_STATUS_PORT = 10080
PUMP_PORT = 8250
DM_MASTER_PORT = 8261
DM_MASTER_PEER_PORT = 8291
DM_WORKER_PORT = 8262
DISCOVERY_PORT = 10261
DISCOVERY_PROXY_PORT = 10262

Address = NewType("Address", str)
"""The URL of a server that belongs to the cluster: scheme, host and port, without a path."""

_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.?")

_DEFAULT_DOMAIN = "cluster.local"
"""The domain of a Kubernetes cluster unless its administrator has chosen another."""

_POD = re.compile(r"[^.]+\.[^.]+\.(?P<namespace>[^.]+)\.svc(\..*)?")
"""The host name of a pod below its Service."""

_MEMBER = re.compile(
    r"(?P<workload>[^.]+)-(?P<ordinal>0|[1-9]\d*)\.(?P<service>[^.]+)\.(?P<namespace>[^.]+)\.svc"
    r"(\.(?P<domain>[^.].*?))?\.?"
)
"""The host name of a pod of a StatefulSet below its headless Service."""


class Stranger(Enum):
    """Why an address does not name a known pod of the cluster."""

    PEER = "another cluster's"
    UNCLEAR = "not understood"
    """The address resembles a pod of this cluster but has an unknown form: it proves nothing, neither presence nor
    absence.
    """


class AddressBook(msgspec.Struct, frozen=True):
    """The names of one cluster."""

    cluster: str
    namespace: str
    cluster_domain: str = ""
    tls: bool = False
    across_k8s: bool = False

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "https" if self.tls else "http"

    def pd(self) -> Address:
        """The URL of PD's Service (A1)."""
        return _address(self.scheme, self.pd_host, PD_CLIENT_PORT)

    @property
    def pd_host(self) -> str:
        """The host of PD's Service."""
        return self._host(f"{self.cluster}-pd")

    def pd_peers(self) -> Address:
        """The URL of PD's headless Service, which heterogeneous clusters across Kubernetes dial (A2)."""
        return self._url(f"{self.cluster}-pd-peer", PD_CLIENT_PORT)

    def pd_member(self, ordinal: int) -> Address:
        """The client URL that PD member `ordinal` advertises (A3)."""
        return _address(self.scheme, self.advertised_host("pd", ordinal), PD_CLIENT_PORT)

    def tikv_status(self, ordinal: int) -> Address:
        """The status URL of a TiKV pod (A7)."""
        return self.member("tikv", ordinal, TIKV_STATUS_PORT)

    def tiflash_status(self, ordinal: int) -> Address:
        """The status URL of the proxy that runs with TiFlash (A11)."""
        return self.member("tiflash", ordinal, TIFLASH_STATUS_PORT)

    def tidb_status(self, ordinal: int) -> Address:
        """The status URL of a TiDB pod (A9)."""
        return self.member("tidb", ordinal, TIDB_STATUS_PORT)

    def member(self, component: str, ordinal: int, port: int) -> Address:
        """The URL under which the operator dials one port of a pod."""
        return self._url(self._peer(component, ordinal), port)

    def pump(self, ordinal: int) -> Address:
        """The URL of a Pump pod (A15)."""
        return self.member("pump", ordinal, PUMP_PORT)

    def dm_masters(self) -> Address:
        """The URL of the Service of DM's masters (A16)."""
        return self._url(f"{self.cluster}-dm-master", DM_MASTER_PORT)

    def pump_ordinal(self, address: str) -> int | None:
        """The ordinal of this cluster's Pump that advertises `address`, with or without the namespace; None for any
        other.
        """
        service = re.escape(f"{self.cluster}-pump")
        suffix = rf"(\.{re.escape(self.namespace)}(\.svc(\..+)?)?)?"
        match = re.fullmatch(rf"{service}-(0|[1-9]\d*)\.{service}{suffix}", _host(address))
        return None if match is None else int(match[1])

    def tidb_service_host(self) -> str:
        """The host of the TiDB Service that SQL clients use (A10)."""
        return f"{self.cluster}-tidb.{self.namespace}.svc{self._suffix()}"

    def advertised_host(self, component: str, ordinal: int) -> str:
        """The host name that a pod of a component (`pd`, `tikv`, `tidb`) advertises."""
        return f"{self._peer(component, ordinal)}.{self.namespace}.svc{self._suffix()}"

    def pd_member_names(self, ordinal: int) -> tuple[str, str]:
        """The names by which PD may know a member: its host name, or its pod name (lifecycle.md 4.1)."""
        return self.advertised_host("pd", ordinal), f"{self.cluster}-pd-{ordinal}"

    def owner_of(self, component: str, address: str) -> int | Stranger:
        """The ordinal of this cluster's pod that advertises `address` (a URL, `host:port` or a host), else a Stranger.

        Pod, Service and namespace decide; the domain does not, because members keep the domain with which they
        registered. Only in a cluster across Kubernetes does another domain mean another Kubernetes cluster. The whole
        host is compared, where v1.6 searches for a pattern (lifecycle.md 4.1).
        """
        host = _host(address)
        match = self._own(component, host)
        if match is None:
            return Stranger.UNCLEAR if self._looks_own(component, address.lower(), host) else Stranger.PEER
        elsewhere = self.across_k8s and self.cluster_domain and match["domain"] not in (None, self.cluster_domain)
        return Stranger.PEER if elsewhere else int(match["ordinal"])

    def ordinal_of(self, component: str, address: str) -> int | None:
        """The ordinal of this cluster's pod that advertises `address`; None if it is not a known pod of the cluster."""
        owner = self.owner_of(component, address)
        return None if isinstance(owner, Stranger) else owner

    def domain_of(self, component: str, address: str) -> str | None:
        """The domain in the address of one of this cluster's pods, empty if it has none; None for other addresses."""
        match = self._own(component, _host(address))
        return None if match is None else match["domain"] or ""

    def _own(self, component: str, host: str) -> re.Match[str] | None:
        """The parsed host of a pod of this cluster; None for any other host."""
        match, workload = _MEMBER.fullmatch(host), f"{self.cluster}-{component}"
        ours = (workload, f"{workload}-peer", self.namespace)
        return match if match and match.group("workload", "service", "namespace") == ours else None

    def _looks_own(self, component: str, address: str, host: str) -> bool:
        """True if an address names a pod or the peer Service of this cluster and does not clearly belong to another
        namespace.
        """
        pod = _POD.fullmatch(host)
        if pod and pod["namespace"] != self.namespace:
            return False
        service = re.escape(f"{self.cluster}-{component}")
        named = rf"(?<![\w.-]){service}-\d+(?![\w-])|(?<![\w-]){service}-peer\.{re.escape(self.namespace)}(?![\w-])"
        return not address or re.search(named, address) is not None

    def _peer(self, component: str, ordinal: int) -> str:
        # Pump's headless Service has no suffix
        suffix = "" if component == "pump" else "-peer"
        return f"{self.cluster}-{component}-{ordinal}.{self.cluster}-{component}{suffix}"

    def _suffix(self) -> str:
        return f".{self.cluster_domain}" if self.cluster_domain else ""

    def _url(self, name: str, port: int) -> Address:
        return _address(self.scheme, self._host(name), port)

    def _host(self, name: str) -> str:
        host = f"{name}.{self.namespace}"
        return f"{host}.svc.{self.cluster_domain}" if self.cluster_domain else host


def _always(namespace: str, cluster: str) -> bool:  # noqa: ARG001  (the shape of what others pass)
    return True


@dataclass(frozen=True, slots=True)
class Reach:
    """The servers that the operator may call for one cluster, beyond those in its address book.

    `hosts` are named in the spec. `shares_pd` takes namespace and name of another TidbCluster in this Kubernetes
    cluster and returns True if the PD members of both form one PD.
    """

    book: AddressBook
    hosts: frozenset[str] = frozenset()
    shares_pd: Callable[[str, str], bool] = _always

    def admit(self, component: str, announced: str) -> Address:
        """The address of a member that a server announces as a URL or as `host:port`.

        Uses only scheme, host and port. Members of the cluster itself are dialled under the cluster's domain, whatever
        domain the server announces. Raises NotInCluster.
        """
        found = _parsed(announced, self.book.scheme)
        if found is None:
            raise NotInCluster(f"a server announces an address of {component} that is no URL with a host and a port")
        scheme, host, port = found
        owner = self.book.owner_of(component, host)
        if not isinstance(owner, Stranger):
            return _address(scheme, self._in_known_domain(component, owner, host), port)
        if host in self.hosts or self._is_peer(component, host, port):
            return _address(scheme, host, port)
        raise NotInCluster(f"a server announces an address of {component} that does not belong to the cluster")

    def _in_known_domain(self, component: str, ordinal: int, host: str) -> str:
        domain = self.book.domain_of(component, host)
        known = domain in ("", _DEFAULT_DOMAIN, self.book.cluster_domain)
        return host if known else self.book.advertised_host(component, ordinal)

    def _is_peer(self, component: str, host: str, port: int) -> bool:
        """True if a host is a PD member of another TidbCluster that shares PD with this one."""
        match = _MEMBER.fullmatch(host)
        if component != "pd" or match is None or match["service"] != f"{match['workload']}-peer":
            return False
        cluster = match["workload"].removesuffix("-pd")
        if cluster == match["workload"]:
            return False
        domain = match["domain"] or ""
        if domain in ("", _DEFAULT_DOMAIN, self.book.cluster_domain):
            return self.shares_pd(match["namespace"], cluster)
        # a member in another Kubernetes cluster: the spec allows them, and the operator cannot look them up
        return self.book.across_k8s and port == PD_CLIENT_PORT


def without_path(announced: str, scheme: str = "http") -> str | None:
    """Scheme, host and port that a server announces, for use by a pod; None if one of them is missing.

    Not an `Address`, because the operator does not dial it and the pod's own network policy limits the pod.
    """
    found = _parsed(announced, scheme)
    return None if found is None else f"{found[0]}://{found[1]}:{found[2]}"


def shown_url(announced: str) -> str:
    """The URL that a server announces, as a status shows it: without its path, which is untrusted text.

    Text that is not a URL stays as it is, so that the status shows the malformed address.
    """
    return without_path(announced) or announced


def host_of(address: str) -> str:
    """The host of a URL or of `host:port`, in lower case; empty if it cannot be parsed."""
    return _host(address)


@lru_cache(maxsize=4096)
def _parsed(announced: str, scheme: str) -> tuple[str, str, int] | None:
    """Scheme, host and port that a server announces; None if one is missing or the scheme is unknown."""
    try:
        parts = urlsplit(announced if "://" in announced else f"{scheme}://{announced}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not port or not _HOST.fullmatch(host):
        return None
    return parts.scheme, host, port


def _address(scheme: str, host: str, port: int) -> Address:
    """Raises NotInCluster for an invalid host name (validation keeps those out of specs)."""
    if not _HOST.fullmatch(host):
        raise NotInCluster(f"{host!r} is no host name: correct the domains and references of the spec")
    return Address(f"{scheme}://{host}:{port}")


@lru_cache(maxsize=4096)
def _host(address: str) -> str:
    """The host of an address in lower case; empty if it cannot be parsed."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        _ = parts.port
    except ValueError:
        return ""
    return parts.hostname or ""
