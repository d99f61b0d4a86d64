"""The names and kinds of clusters (defaults-and-validation.md 8.2, 8.4)."""

from collections.abc import Collection

from apis.cluster import Cluster
from apis.tidbcluster import TidbCluster

INSTANCE_LABEL = "app.kubernetes.io/instance"
FORCE_PD_BOOTSTRAP = "tidb.pingcap.com/force-pd-bootstrap"
"""Annotation of the TidbCluster: the id of the PD cluster that the user abandons. Unknown to v1.6."""

SKIP_TLS_WHEN_CONNECT_TIDB = "tidb.tidb.pingcap.com/skip-tls-when-connect-tidb"
"""Annotation of the TidbCluster: SQL clients use no TLS, although TiDB offers it."""


def instance_name(tc: Cluster) -> str:
    """The value of the label `app.kubernetes.io/instance` of everything made for the cluster (objects.md 1.2)."""
    own = tc.metadata.labels.get(INSTANCE_LABEL) if tc.HAS_INSTANCE_LABEL else ""
    return own or tc.metadata.name


def tls_enabled(tc: Cluster) -> bool:
    """True if the components speak TLS with each other (objects.md 9.2)."""
    return tc.spec.tls_cluster is not None and tc.spec.tls_cluster.enabled


def scheme(tc: Cluster) -> str:
    """`https` if the components use TLS with each other, else `http`."""
    return "https" if tls_enabled(tc) else "http"


def speaks_sql_tls(tc: TidbCluster) -> bool:
    """True if the operator's objects connect to TiDB's SQL port by TLS (objects.md 9.3)."""
    tidb = tc.spec.tidb
    enabled = tidb is not None and tidb.tls_client is not None and tidb.tls_client.enabled
    return enabled and SKIP_TLS_WHEN_CONNECT_TIDB not in tc.metadata.annotations


def skips_sql_authority(tc: TidbCluster) -> bool:
    """True if clients of SQL take the server's certificate as it is."""
    tidb = tc.spec.tidb
    return bool(tidb and tidb.tls_client and tidb.tls_client.skip_internal_client_ca)


def is_heterogeneous(tc: TidbCluster) -> bool:
    """True if the cluster is a part of another one (objects.md 8)."""
    return tc.spec.cluster is not None and bool(tc.spec.cluster.name)


def known_cluster_ids(tc: TidbCluster, claimed: Collection[str] = ()) -> tuple[str, ...]:
    """The known ids of the PD cluster: the status's, else those in the labels of volume claims.

    The status may have lost the id, or belong to a TidbCluster that was recreated over its volumes (F40).
    """
    return (tc.status.cluster_id,) if tc.status.cluster_id else tuple(sorted(claimed))


def is_abandoned(tc: TidbCluster, claimed: Collection[str] = ()) -> bool:
    """True if the user has abandoned the known PD cluster, so that another may replace it."""
    return known_cluster_ids(tc, claimed) == (tc.metadata.annotations.get(FORCE_PD_BOOTSTRAP),)
