"""The TidbCluster that an object of another kind is for: which it names, and whether it is there."""

from typing import Any

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from controllers.simple_kind import Reconcile
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS
from member.outcome import Waiting


def one_cluster(owner: Object) -> list[str]:
    """The key of the TidbCluster that `spec.cluster` names, in the namespace of the owner."""
    return _keys(owner, [(owner.decode().get("spec") or {}).get("cluster")], own_namespace=True)


def listed_clusters(owner: Object) -> list[str]:
    """The keys of the TidbClusters that `spec.clusters` names."""
    return _keys(owner, (owner.decode().get("spec") or {}).get("clusters") or [])


def _keys(owner: Object, references: list[Json | None], *, own_namespace: bool = False) -> list[str]:
    own = owner.metadata.namespace
    named = [each for each in references if each and each.get("name")]
    return [f"{own if own_namespace else each.get('namespace') or own}/{each['name']}" for each in named]


def find_cluster(ctx: Reconcile[Any], namespace: str, name: str, field: str) -> TidbCluster | Waiting:
    """The TidbCluster with its defaults, as cached; the wait for it where it is not there, goes, or can't be read."""
    found = ctx.lister(TIDB_CLUSTERS).get(namespace, name)
    if found is None:
        what = f"waiting for TidbCluster {namespace}/{name}, which does not exist"
        return Waiting("NoSuchCluster", f"{what}; create it, or correct {field}")
    if found.metadata.deletion_timestamp:
        return Waiting("NoSuchCluster", f"TidbCluster {namespace}/{name} is being deleted; correct {field}")
    try:
        return with_defaults(decode(found.decode(), TidbCluster))
    except InvalidField as error:
        return Waiting("ClusterInvalid", f"waiting for TidbCluster {namespace}/{name} to be valid: {error}")
