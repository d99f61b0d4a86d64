"""The TidbCluster to which an object of another kind refers, or the wait for it."""

from collections.abc import Sequence
from typing import Any

from apis.consent import Permission
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.shared import TidbClusterRef
from apis.tidbcluster import TidbCluster
from controllers.consent import granted_name, not_allowed, permission, withdraw
from controllers.simple_kind import Reconcile
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS, Resource
from member.naming import referenced_cluster
from member.outcome import Waiting

CERTIFICATE_KEYS = ("ca.crt", "tls.crt", "tls.key")
_LOOK_AGAIN = 10.0
"""Seconds until the operator reads a missing Secret again."""


def one_cluster(owner: Object) -> list[str]:
    """The key of the TidbCluster that `spec.cluster` names, in the namespace of the owner."""
    return _keys(owner, [(owner.decode().get("spec") or {}).get("cluster")], own_namespace=True)


def listed_clusters(owner: Object) -> list[str]:
    """The keys of the TidbClusters that `spec.clusters` names."""
    return _keys(owner, (owner.decode().get("spec") or {}).get("clusters") or [])


def _keys(owner: Object, references: list[Json | None], *, own_namespace: bool = False) -> list[str]:
    own = owner.metadata.namespace
    named = [reference for reference in references if reference and reference.get("name")]
    return [f"{own if own_namespace else each.get('namespace') or own}/{each['name']}" for each in named]


def find_cluster(ctx: Reconcile[Any], namespace: str, name: str, field: str) -> TidbCluster | Waiting:
    """The TidbCluster with its defaults; a wait if it does not exist, is being deleted, or cannot be decoded.

    Another operator may manage it: `-selector` limits what this one manages, not references. Raises like `referred`.
    """
    found = ctx.referred(TIDB_CLUSTERS, namespace, name)
    if found is None:
        what = f"waiting for TidbCluster {namespace}/{name}, which does not exist{where_seen(ctx, namespace)}"
        return Waiting("NoSuchCluster", f"{what}; create it, or correct {field}")
    if found.metadata.deletion_timestamp:
        return Waiting("NoSuchCluster", f"TidbCluster {namespace}/{name} is being deleted; correct {field}")
    try:
        return with_defaults(decode(found.decode(), TidbCluster))
    except InvalidField as error:
        return Waiting("ClusterInvalid", f"waiting for TidbCluster {namespace}/{name} to be valid: {error}")


def where_seen(ctx: Reconcile[Any], namespace: str) -> str:
    """The end of a message "does not exist": `-cluster-scoped=false` hides other namespaces from the operator."""
    return "" if namespace == ctx.namespace else " where this operator may look"


def listed_cluster(
    ctx: Reconcile[Any], references: Sequence[TidbClusterRef], made: Sequence[Resource]
) -> TidbCluster | Waiting:
    """The one TidbCluster of `spec.clusters`; a wait if it is not available or has no PD.

    Deletes the owner's objects of the resources `made` that were created with the consent of another cluster, or all of
    them if this cluster does not consent. Raises like `withdraw` and `referred`.
    """
    name, namespace = references[0].name, references[0].namespace or ctx.namespace
    # the other cluster may withdraw its consent while this one cannot be served
    withdraw(ctx, made, named=granted_name(TIDB_CLUSTERS.kind, namespace, name))
    target = ctx.referred(TIDB_CLUSTERS, namespace, name)
    if permission(ctx, target, namespace) is Permission.NONE:
        withdraw(ctx, made)
        return not_allowed(ctx, TIDB_CLUSTERS, namespace, name)
    tc = find_cluster(ctx, namespace, name, "spec.clusters[0]")
    if isinstance(tc, TidbCluster) and tc.spec.pd is None and referenced_cluster(tc) is None:
        return Waiting("NoPD", f"TidbCluster {name} has no PD: waiting for its spec.pd")
    return tc


def certificate(ctx: Reconcile[Any], namespace: str, name: str) -> dict[str, str] | Waiting:
    """The certificate in a Secret, read live, in base64; a wait if the Secret or one of its keys is missing.

    Raises ApiError, TransportError.
    """
    found = ctx.secret(name, namespace)
    data = (found.decode().get("data") or {}) if found else {}
    if missing := [key for key in CERTIFICATE_KEYS if not data.get(key)]:
        what = f"has no {', '.join(missing)}" if found else "does not exist"
        return Waiting(
            "MissingSecret", f"Secret {namespace}/{name} {what}; create it with a client's certificate", _LOOK_AGAIN
        )
    return {key: data[key] for key in CERTIFICATE_KEYS}
