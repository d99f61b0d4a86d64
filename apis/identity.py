"""What a TidbCluster is called and of which sort it is (defaults-and-validation.md 8.2, 8.4)."""

from apis.tidbcluster import TidbCluster

INSTANCE_LABEL = "app.kubernetes.io/instance"
FORCE_PD_BOOTSTRAP = "tidb.pingcap.com/force-pd-bootstrap"
"""Annotation of the TidbCluster; its value is the id of the PD cluster that is given up. Ours, unknown to v1.6."""


def instance_name(tc: TidbCluster) -> str:
    """The value of the label `app.kubernetes.io/instance` of everything made for the cluster (objects.md 1.2)."""
    return tc.metadata.labels.get(INSTANCE_LABEL) or tc.metadata.name


def tls_enabled(tc: TidbCluster) -> bool:
    """Whether the components speak TLS with each other (objects.md 9.2)."""
    return tc.spec.tls_cluster is not None and tc.spec.tls_cluster.enabled


def scheme(tc: TidbCluster) -> str:
    """`https` when the components speak TLS with each other, else `http`."""
    return "https" if tls_enabled(tc) else "http"


def is_heterogeneous(tc: TidbCluster) -> bool:
    """Whether the cluster is a part of another one (objects.md 8)."""
    return tc.spec.cluster is not None and bool(tc.spec.cluster.name)


def is_abandoned(tc: TidbCluster) -> bool:
    """Whether the user has given up the PD cluster whose id the status holds, so that another may take its place."""
    return bool(tc.status.cluster_id) and tc.metadata.annotations.get(FORCE_PD_BOOTSTRAP) == tc.status.cluster_id
