"""Names of objects, Secrets and members of a cluster (objects.md 1.1, 8, 9.1; lifecycle.md 4.1).

`dataplane.addresses` builds the addresses of servers; this module gives it the parts of the cluster's spec.
"""

from collections.abc import Callable

from apis.cluster import Cluster
from apis.components import DM_CLUSTER, component_type
from apis.dmcluster import DMCluster
from apis.identity import is_heterogeneous, tls_enabled
from apis.shared import TidbClusterRef
from apis.tidbcluster import TidbCluster
from dataplane.addresses import Address, AddressBook, Reach, host_of


def member_name(tc: Cluster, component: str) -> str:
    """`<tc>-<component>`: the StatefulSet, the Service for clients, and the base of the ConfigMap's name."""
    return f"{tc.metadata.name}-{component}"


def discovery_of(tc: Cluster) -> str:
    """The component that PD or DM-master pods call at their first start."""
    return "dm-discovery" if isinstance(tc, DMCluster) else "discovery"


def peer_service(tc: Cluster, component: str) -> str:
    """`<tc>-<component>-peer`, the headless Service; Pump's has no suffix."""
    return f"{member_name(tc, component)}{component_type(component).peer_suffix}"


def pod_name(tc: Cluster, component: str, ordinal: int) -> str:
    """`<tc>-<component>-<ordinal>`."""
    return f"{tc.metadata.name}-{component}-{ordinal}"


def pvc_name(volume: str, pod: str) -> str:
    """`<claim template>-<pod>`, as the StatefulSet controller names claims (objects.md 5)."""
    return f"{volume}-{pod}"


def ordinal_of(pod: str) -> int:
    """The ordinal at the end of a pod's name. Raises ValueError if there is none."""
    return int(pod.rpartition("-")[2])


def member_host(tc: Cluster, component: str, pod: str) -> str:
    """The host that a member advertises: `<pod>.<tc>-<component>-peer.<ns>.svc[.<domain>]` (objects.md 7.4)."""
    return address_book(tc).advertised_host(component, ordinal_of(pod))


def pd_member_name(tc: TidbCluster, pod: str) -> str:
    """The name that a PD member gives itself: its host if clusters span networks, else the pod's name."""
    if tc.spec.across_k8s or tc.spec.cluster_domain:
        return member_host(tc, "pd", pod)
    return pod


def discovery_mtls(tc: Cluster) -> bool:
    """True if Discovery demands client certificates (objects.md 9.4)."""
    return tls_enabled(tc) and tc.spec.tls_cluster is not None and tc.spec.tls_cluster.enable_discovery_mtls


def address_book(tc: Cluster) -> AddressBook:
    """The addresses of the cluster's own members."""
    spec, meta = tc.spec, tc.metadata
    return AddressBook(meta.name, meta.namespace, spec.cluster_domain, tls_enabled(tc), spec.across_k8s)


def referenced_cluster(tc: TidbCluster) -> TidbClusterRef | None:
    """The cluster whose PD this one uses; None unless this one is heterogeneous without its own PD (objects.md 8)."""
    return tc.spec.cluster if tc.spec.pd is None and is_heterogeneous(tc) else None


def pd_url(tc: TidbCluster) -> Address:
    """The address of the cluster's own PD, or of the referenced cluster's (objects.md 8)."""
    reference = referenced_cluster(tc)
    if reference is None:
        return address_book(tc).pd()
    namespace = reference.namespace or tc.metadata.namespace
    book = AddressBook(reference.name, namespace, reference.cluster_domain, tls_enabled(tc))
    return book.pd_peers() if tc.spec.across_k8s else book.pd()


def reach(tc: TidbCluster, shares_pd: Callable[[str, str], bool]) -> Reach:
    """The servers outside the cluster that the operator may call for it: its PD's members in other clusters.

    `shares_pd`: see `Reach`.
    """
    return Reach(address_book(tc), frozenset(map(host_of, tc.spec.pd_addresses)) - {""}, shares_pd)


def tidb_status_url(tc: TidbCluster, pod: str) -> Address:
    """The address of a TiDB server's status port."""
    return address_book(tc).tidb_status(ordinal_of(pod))


def tiflash_status_url(tc: TidbCluster, pod: str) -> Address:
    """The address of the status port of the proxy beside a TiFlash server."""
    return address_book(tc).tiflash_status(ordinal_of(pod))


def tikv_status_url(tc: TidbCluster, pod: str) -> Address:
    """The address of a TiKV's status port."""
    return address_book(tc).tikv_status(ordinal_of(pod))


def cluster_secret(tc: Cluster, component: str) -> str:
    """The Secret with a component's certificate (objects.md 9.1)."""
    return f"{member_name(tc, component)}-cluster-secret"


def cluster_client_secret(tc: Cluster) -> str:
    """The Secret with the certificate of the operator's own clients."""
    return client_secret_of(tc.kind, tc.metadata.name)


def client_secret_of(kind: str, name: str) -> str:
    """Like `cluster_client_secret`, by kind and name of the cluster."""
    return f"{name}-{'dm' if kind == DM_CLUSTER else 'cluster'}-client-secret"


def tidb_server_secret(tc: TidbCluster) -> str:
    """The Secret with the certificate of TiDB's MySQL port."""
    return f"{tc.metadata.name}-tidb-server-secret"


def tidb_client_secret(tc: TidbCluster) -> str:
    """The Secret with which PD's dashboard connects to TiDB."""
    if tc.spec.pd is not None and tc.spec.pd.tls_client_secret_name:
        return tc.spec.pd.tls_client_secret_name
    return f"{tc.metadata.name}-tidb-client-secret"


def tidb_auth_token_secret(tc: TidbCluster) -> str:
    """The Secret with the key set of TiDB's token authentication."""
    return f"{tc.metadata.name}-tidb-auth-token-jwks-secret"
