"""The etcd in the PD of a TidbCluster, for controllers of other kinds."""

from collections.abc import Callable

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from dataplane.etcd import EtcdClient
from kube.objects import Object
from member import api_clients
from member.context import Dependencies, ReconcileContext

EtcdOf = Callable[[Object], EtcdClient]
"""Returns an etcd client of a TidbCluster. Raises InvalidField, BadTlsMaterial, ApiError, TransportError."""


def etcd_of(deps: Dependencies) -> EtcdOf:
    """A function that makes etcd clients with the certificates of each cluster."""

    def reach(cluster: Object) -> EtcdClient:
        tc = with_defaults(decode(cluster.decode(), TidbCluster))
        return api_clients.etcd(ReconcileContext(cluster, tc, deps))

    return reach
