"""DMCluster, pingcap.com/v1alpha1 (api/dmcluster.fields)."""

from typing import ClassVar

from msgspec import field

from apis.cluster import Cluster, ClusterSpec, ClusterStatus
from apis.dm_components import DMDiscoverySpec, DMMasterSpec, DMMasterStatus, DMWorkerSpec, DMWorkerStatus


class DMClusterSpec(ClusterSpec, kw_only=True):
    """`spec`: what the user wants, for the cluster, its masters and its workers."""

    discovery: DMDiscoverySpec | None = None
    master: DMMasterSpec | None = None
    worker: DMWorkerSpec | None = None
    tls_client_secret_names: list[str] = []


class DMClusterStatus(ClusterStatus, kw_only=True):
    """`status`: the operator's last observation. Only the records of failover must be remembered; all else can be
    observed again."""

    master: DMMasterStatus = field(default_factory=DMMasterStatus)
    worker: DMWorkerStatus = field(default_factory=DMWorkerStatus)


class DMCluster(Cluster, kw_only=True):
    """A cluster of DM (data migration): what the user wants, and what the operator last saw."""

    LABELLED_NAME: ClassVar[str] = "dm-cluster"
    HAS_INSTANCE_LABEL: ClassVar[bool] = False

    kind: str = "DMCluster"
    spec: DMClusterSpec
    status: DMClusterStatus = field(default_factory=DMClusterStatus)
