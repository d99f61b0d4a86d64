"""The kinds of clusters."""

from collections.abc import Mapping

from apis.components import DM_CLUSTER, TIDB_CLUSTER
from apis.dmcluster import DMCluster
from apis.tidbcluster import TidbCluster

CLUSTER_MODELS: Mapping[str, type[TidbCluster | DMCluster]] = {TIDB_CLUSTER: TidbCluster, DM_CLUSTER: DMCluster}
"""The models by kind."""
