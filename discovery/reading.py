"""Discovery's reads, with the credentials of its pod (objects.md 10.1)."""

from apis.data_volumes import (
    CLUSTER_ID_LABEL,
    COMPONENT_LABEL,
    DEFER_DELETING,
    MEMBER_ID_LABEL,
    cluster_id_of,
    is_claim_of,
)
from apis.decoding import InvalidField, decode
from apis.dmcluster import DMCluster
from apis.identity import tls_enabled
from apis.ordinals import gated
from apis.tidbcluster import TidbCluster
from dataplane.addresses import DM_MASTER_PORT, Address, AddressBook
from dataplane.clients import DataPlane
from dataplane.dm import DMMasterClient, LiveMaster
from dataplane.errors import BadTlsMaterial, DataPlaneError, Unavailable
from dataplane.pd import Membership
from dataplane.tls import TlsMaterial
from discovery.askers import doubt_about
from discovery.asking import Refused
from kube.client import Client
from kube.errors import ApiError, Forbidden
from kube.objects import ObjectMeta, secret_data
from kube.resources import DM_CLUSTERS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS, TIDB_CLUSTERS
from ports.transport import ConnectionRefused, TransportError


class _LiveObjects:
    """Live reads of pods and volume claims."""

    def __init__(self, client: Client, *, compares_addresses: bool = True, counts_slots: bool = False) -> None:
        """`compares_addresses`: questions must come from the address of their pod. `counts_slots`: as in
        `gated`.
        """
        self._client = client
        self._compares_addresses = compares_addresses
        self._counts_slots = counts_slots

    def doubt(self, namespace: str, workload: str, pod: str, source: str) -> str:
        """The doubt about a question; see `Askers.doubt`."""
        try:
            found = self._client.find(PODS, pod, namespace)
        except Forbidden:
            return f"pod {pod} cannot be verified: the Role of discovery does not allow it to get pods"
        return doubt_about(found, pod, workload, source, compares=self._compares_addresses)

    def is_given_up(self, namespace: str, claim: str) -> bool:
        """True if the user has given up the data in a claim, or the claim is being deleted. Raises ApiError,
        TransportError.
        """
        found = self._claims(namespace, field_selector=f"metadata.name={claim}")
        return any(meta.deletion_timestamp or DEFER_DELETING in meta.annotations for meta in found)

    def _claims(self, namespace: str, *, label_selector: str = "", field_selector: str = "") -> list[ObjectMeta]:
        """The metadata of claims: all that is needed, at a fraction of the cost of their bodies."""
        page = self._client.list_page(
            PERSISTENT_VOLUME_CLAIMS,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=True,
        )
        return [item.metadata for item in page.items]


class LiveClusters(_LiveObjects):
    """Live reads of TidbClusters."""

    def get(self, namespace: str, name: str) -> TidbCluster:
        """The cluster. Raises Refused if it cannot be decoded, ApiError, TransportError."""
        tree = self._client.get(TIDB_CLUSTERS, name, namespace).decode()
        try:
            return gated(decode(tree, TidbCluster), self._counts_slots)
        except InvalidField as error:
            raise Refused(f"TidbCluster {namespace}/{name}: {error}") from error

    def claimed(self, tc: TidbCluster) -> frozenset[str]:
        """The cluster ids in the labels of claims with data that is still needed. Raises ApiError, TransportError."""
        # matched by name: a claim may be older than the cluster's current instance name
        claims = self._claims(tc.metadata.namespace, label_selector=CLUSTER_ID_LABEL)
        own = (meta for meta in claims if is_claim_of(tc.metadata.name, meta.name, meta.labels))
        found = (cluster_id_of(meta.labels, meta.annotations) for meta in own)
        return frozenset(found) - {""}


class LiveDMClusters(_LiveObjects):
    """Live reads of DMClusters."""

    def get(self, namespace: str, name: str) -> DMCluster:
        """The cluster. Raises Refused if it cannot be decoded, ApiError, TransportError."""
        tree = self._client.get(DM_CLUSTERS, name, namespace).decode()
        try:
            return gated(decode(tree, DMCluster), self._counts_slots)
        except InvalidField as error:
            raise Refused(f"DMCluster {namespace}/{name}: {error}") from error

    def with_data(self, dc: DMCluster) -> frozenset[str]:
        """The masters' claims that carry a master's id and are still needed. Raises ApiError, TransportError."""
        claims = self._claims(dc.metadata.namespace, label_selector=MEMBER_ID_LABEL)
        own = (meta for meta in claims if meta.labels.get(COMPONENT_LABEL) == "dm-master")
        of_it = (meta for meta in own if is_claim_of(dc.metadata.name, meta.name, meta.labels))
        return frozenset(meta.name for meta in of_it if DEFER_DELETING not in meta.annotations)


class LiveMasters:
    """Reads DM's masters, with the certificate in the cluster's client Secret."""

    def __init__(self, client: Client, dataplane: DataPlane) -> None:
        self._client = client
        self._dataplane = dataplane

    def masters(self, dc: DMCluster, timeout: float) -> tuple[LiveMaster, ...]:
        """The members that a master behind the Service lists. Raises DataPlaneError."""
        return self._of(dc, _dm_addresses(dc).dm_masters()).masters(timeout)

    def answers(self, dc: DMCluster, ordinal: int, timeout: float) -> bool:
        """True unless the address of one master refuses the connection."""
        try:
            self._of(dc, _dm_addresses(dc).member("dm-master", ordinal, DM_MASTER_PORT)).masters(timeout)
        except DataPlaneError as error:
            return not (isinstance(error, Unavailable) and isinstance(error.cause, ConnectionRefused))
        return True

    def _of(self, dc: DMCluster, url: Address) -> DMMasterClient:
        secret = f"{dc.metadata.name}-dm-client-secret"
        tls = _material(self._client, secret, dc.metadata.namespace) if tls_enabled(dc) else None
        return DMMasterClient(self._dataplane.caller(url, tls))


def _dm_addresses(dc: DMCluster) -> AddressBook:
    return AddressBook(dc.metadata.name, dc.metadata.namespace, tls=tls_enabled(dc))


class LiveMembers:
    """Reads PD's members, with the certificate in the cluster's client Secret."""

    def __init__(self, client: Client, dataplane: DataPlane) -> None:
        self._client = client
        self._dataplane = dataplane

    def members(self, tc: TidbCluster, url: Address, timeout: float) -> Membership:
        """The members that the PD at `url` lists. Raises DataPlaneError."""
        secret = f"{tc.metadata.name}-cluster-client-secret"
        tls = _material(self._client, secret, tc.metadata.namespace) if tls_enabled(tc) else None
        return self._dataplane.pd(url, tls).members(timeout)


def _material(client: Client, name: str, namespace: str) -> TlsMaterial:
    try:
        secret = client.get(SECRETS, name, namespace)
    except (ApiError, TransportError) as error:
        raise BadTlsMaterial(f"cannot read Secret {namespace}/{name}: {error}") from error
    return TlsMaterial.from_secret(secret_data(secret))
