"""Discovery's reads, with the credentials its pod has (objects.md 10.1)."""

from apis.data_volumes import CLUSTER_ID_LABEL, cluster_id_of, is_claim_of
from apis.decoding import InvalidField, decode
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.clients import DataPlane
from dataplane.errors import BadTlsMaterial
from dataplane.pd import Membership
from dataplane.tls import TlsMaterial
from discovery.asking import Refused
from kube.client import Client
from kube.errors import ApiError
from kube.objects import secret_data
from kube.resources import PERSISTENT_VOLUME_CLAIMS, SECRETS, TIDB_CLUSTERS
from ports.transport import TransportError


class LiveClusters:
    """TidbClusters as the API server has them now."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, namespace: str, name: str) -> TidbCluster:
        """The cluster. Raises Refused when it cannot be understood, ApiError, TransportError."""
        tree = self._client.get(TIDB_CLUSTERS, name, namespace).decode()
        try:
            return decode(tree, TidbCluster)
        except InvalidField as error:
            raise Refused(f"TidbCluster {namespace}/{name}: {error}") from error

    def claimed(self, tc: TidbCluster) -> frozenset[str]:
        """The ids that the claims are labelled with whose data is still needed. Raises ApiError, TransportError."""
        # by name alone: they may be from before the cluster got another instance name
        page = self._client.list_page(PERSISTENT_VOLUME_CLAIMS, tc.metadata.namespace, label_selector=CLUSTER_ID_LABEL)
        claims = (each.metadata for each in page.items)
        own = (meta for meta in claims if is_claim_of(tc.metadata.name, meta.name, meta.labels))
        found = (cluster_id_of(meta.labels, meta.annotations) for meta in own)
        return frozenset(found) - {""}


class LiveMembers:
    """PD's members, asked with the certificate of the cluster's client Secret."""

    def __init__(self, client: Client, dataplane: DataPlane) -> None:
        self._client = client
        self._dataplane = dataplane

    def members(self, tc: TidbCluster, url: str, timeout: float) -> Membership:
        """What the PD at `url` says. Raises DataPlaneError."""
        tls = self._material(tc) if tls_enabled(tc) else None
        return self._dataplane.pd(url, tls).members(timeout)

    def _material(self, tc: TidbCluster) -> TlsMaterial:
        name = f"{tc.metadata.name}-cluster-client-secret"
        try:
            secret = self._client.get(SECRETS, name, tc.metadata.namespace)
        except (ApiError, TransportError) as error:
            raise BadTlsMaterial(f"cannot read Secret {tc.metadata.namespace}/{name}: {error}") from error
        return TlsMaterial.from_secret(secret_data(secret))
