"""Whether there is a PD for a cluster that lacks one of its own, or that is to join another's (objects.md 8)."""

from apis.tidbcluster import TidbCluster
from kube.errors import ApiError
from kube.resources import TIDB_CLUSTERS
from member.context import ClusterContext
from member.outcome import Waiting

_LOOK_AGAIN = 10.0
"""Seconds; what happens to another cluster brings this one back through no event."""


def without_pd(ctx: ClusterContext) -> Waiting | None:
    """The wait for a PD that the spec does not have, and that no other cluster has for it.

    Asks the API server where the cache has no such cluster. Raises TransportError.
    """
    if not isinstance(ctx.tc, TidbCluster):
        return None
    spec, reference = ctx.tc.spec, ctx.tc.spec.cluster
    if reference is not None and reference.name:
        # with a domain it may be in another Kubernetes cluster
        elsewhere = reference.cluster_domain or spec.across_k8s
        return None if elsewhere else _of_another(ctx, reference.namespace or ctx.namespace, reference.name)
    if spec.pd is not None or spec.pd_addresses:
        return None
    return Waiting("NoPD", "the cluster has no PD: add spec.pd, or name a cluster that has one in spec.cluster")


def joined_cluster(tc: TidbCluster) -> str:
    """The cluster that this one joins, or whose PD it uses, as messages name it; empty where there is none."""
    if tc.spec.cluster is None or not tc.spec.cluster.name:
        return ""
    elsewhere = f" at {tc.spec.cluster.cluster_domain}" if tc.spec.cluster.cluster_domain else ""
    return f"TidbCluster {tc.spec.cluster.namespace or tc.metadata.namespace}/{tc.spec.cluster.name}{elsewhere}"


def _of_another(ctx: ClusterContext, namespace: str, name: str) -> Waiting | None:
    cached = ctx.listers.tidb_clusters.get(namespace, name)
    try:
        found = cached or ctx.deps.client.find(TIDB_CLUSTERS, name, namespace)
    except ApiError:
        # this operator may not see it
        return None
    if found is None:
        what = f"spec.cluster names TidbCluster {namespace}/{name}, which does not exist; create it, or correct that"
        return Waiting("NoSuchCluster", what, _LOOK_AGAIN)
    if (found.decode().get("spec") or {}).get("pd") is None:
        what = f"spec.cluster names TidbCluster {namespace}/{name}, which has no PD; name one that has spec.pd"
        return Waiting("NoPD", what, _LOOK_AGAIN)
    return None
