"""The pods that ask, and the addresses of PD (objects.md 10.3, 10.5)."""

from dataclasses import dataclass

from apis.identity import is_heterogeneous, scheme, tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT, Address, AddressBook, Reach, host_of, without_path
from dataplane.errors import NotInCluster


class Refused(Exception):
    """Raised when discovery has no answer. The message is the reason; the script retries."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A PD pod; `address` is the peer address that it advertises."""

    cluster: str
    namespace: str
    pod: str
    host: str
    address: str


def asker(advertised: str, namespace: str) -> Asker:
    """The pod that advertises an address. Raises Refused unless it is a PD pod in `namespace`."""
    address = advertised.strip()
    host = address.rpartition(":")[0]
    labels = host.split(".")
    if len(labels) < 4 or labels[3] != "svc":
        raise Refused(f"{address!r} is not an address <pod>.<cluster>-pd-peer.<namespace>.svc[.<domain>]:2380")
    pod, service, its_namespace = labels[:3]
    cluster = service.removesuffix("-pd-peer")
    if cluster == service or not _is_ordinal(pod.removeprefix(f"{cluster}-pd-"), pod):
        raise Refused(f"{address!r} is not the address of a PD pod")
    if its_namespace != namespace:
        raise Refused(
            f"{address!r} is in namespace {its_namespace}, but this discovery service serves namespace {namespace}"
        )
    return Asker(cluster, namespace, pod, host, address)


def _is_ordinal(text: str, pod: str) -> bool:
    return text != pod and text.isdecimal()


def address_book(tc: TidbCluster) -> AddressBook:
    """The address book of the cluster."""
    return AddressBook(
        tc.metadata.name, tc.metadata.namespace, tc.spec.cluster_domain, tls_enabled(tc), tc.spec.across_k8s
    )


def _peer(tc: TidbCluster, announced: str) -> Address | None:
    """The address of the PD member that announces a URL; None if it is not the address of a PD pod.

    Discovery can read only the TidbClusters of its own namespace. It therefore assumes that a PD pod of another
    namespace shares PD with this cluster.
    """
    hosts = frozenset(map(host_of, tc.spec.pd_addresses)) - {""}
    try:
        return Reach(address_book(tc), hosts).admit("pd", announced)
    except NotInCluster:
        return None


def pd_services(tc: TidbCluster) -> list[Address]:
    """The URLs of PD: the cluster's own Service, the referenced cluster's, and known peers (10.3.4)."""
    urls = [address_book(tc).pd()] if tc.spec.pd else []
    if is_heterogeneous(tc):
        urls.append(_referenced_pd(tc))
    peers = tc.status.pd.peer_members
    announced = (peers[name].client_url for name in sorted(peers))
    return urls + [address for url in announced if (address := _peer(tc, url))]


def _referenced_pd(tc: TidbCluster) -> Address:
    reference = tc.spec.cluster
    assert reference is not None
    namespace = reference.namespace or tc.metadata.namespace
    book = AddressBook(reference.name, namespace, reference.cluster_domain, tls_enabled(tc))
    return book.pd_peers() if tc.spec.across_k8s else book.pd()


@dataclass(frozen=True, slots=True)
class Question:
    """`[scheme://]<cluster>-pd[:port]`, as TiKV and TiDB know PD. `scheme` includes `://`, or is empty."""

    scheme: str
    cluster: str
    port: str


def question(url: str) -> Question:
    """Parse the URL to verify. Raises Refused."""
    before, separator, rest = url.rpartition("://")
    host, _, port = rest.partition(":")
    cluster = host.removesuffix("-pd")
    if not cluster or cluster == host:
        raise Refused(f"{url!r} is not an address [scheme://]<cluster>-pd[:port]")
    return Question(before + separator, cluster, port or str(PD_CLIENT_PORT))


def verified(tc: TidbCluster, asked: Question, url: str) -> str:
    """The URL of PD for this cluster (10.5)."""
    reference = tc.spec.cluster
    if tc.spec.pd is None and is_heterogeneous(tc) and reference is not None:
        namespace = reference.namespace or tc.metadata.namespace
        domain = f".{reference.cluster_domain}" if reference.cluster_domain else ""
        return f"{asked.scheme}{reference.name}-pd-peer.{namespace}.svc{domain}:{asked.port}"
    peers = tc.status.pd.peer_members
    announced = (peers[name].client_url for name in sorted(peers) if peers[name].health)
    healthy = [found for peer in announced if (found := without_path(peer, scheme(tc)))]
    others = healthy if asked.scheme else [peer.rpartition("://")[2] for peer in healthy]
    return ",".join([url, *others])
