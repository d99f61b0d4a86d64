"""Restores to a point in time, during which TiKV must not collect garbage (backup.md 4.4). Reads only.

During a reconcile the cluster carries an internal annotation. The operator handles it like a change by the user: TiKV
restarts with `gc.ratio-threshold = -1`, and restarts with the old value after the last such Restore has ended. Stores
that joined from other TidbClusters hold parts of the same tables, so all TidbClusters of one database get the
annotation; v1.6 switches garbage collection off only in the one that the Restore names.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeAlias

import msgspec
from msgspec import structs

from apis.consent import Permission, ReferencePolicy
from apis.shared import TidbClusterRef
from apis.tidbcluster import TidbCluster
from kube.objects import Object
from kube.reading import Lister
from member.labels import RESTORING_TO_POINT_IN_TIME

ClusterKey: TypeAlias = tuple[str, str]
"""Namespace and name of a TidbCluster."""

WAITING_FOR_GC_OFF = "WaitingForGCOff"
JOB_FAILED = "CreateRestoreJobFailed"

_BEGUN = ("Scheduled", "Running", "SnapshotRestore", "LogRestore")
_CHECKED = (WAITING_FOR_GC_OFF, JOB_FAILED)
"""Reasons of the condition RetryFailed of a Restore that has passed all checks. Others must not restart a database."""
_ENDED = ("Complete", "Failed", "Invalid")


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Cluster(msgspec.Struct, frozen=True, rename="camel"):
    cluster: str = ""
    cluster_namespace: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    restore_mode: str = ""
    br: _Cluster | None = None


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class _Restore(msgspec.Struct, frozen=True):
    spec: _Spec
    status: _Status | None = None


class _Parts(msgspec.Struct, frozen=True):
    cluster: TidbClusterRef | None = None


class _TidbCluster(msgspec.Struct, frozen=True):
    spec: _Parts


def marked(tc: TidbCluster, restores: Iterable[Object], clusters: Lister, references: ReferencePolicy) -> TidbCluster:
    """The cluster, annotated while a Restore to a point in time writes into its database.

    A Restore of another namespace counts if the cluster that it names consents, or if `references` permits it.
    """
    named = [(restore.metadata.namespace, target) for restore in restores if (target := into(restore))]
    if not named:
        return tc
    there = clusters.list()
    may_refer = partial(_may_refer, references, {_key(obj): obj for obj in there})
    targets = {target for source, target in named if may_refer(source, target)}
    if targets.isdisjoint(joined((tc.metadata.namespace, tc.metadata.name), there, references)):
        return tc
    annotations = tc.metadata.annotations | {RESTORING_TO_POINT_IN_TIME: "true"}
    return structs.replace(tc, metadata=structs.replace(tc.metadata, annotations=annotations))


def joined(key: ClusterKey, clusters: Iterable[Object], references: ReferencePolicy) -> set[ClusterKey]:
    """The TidbClusters of one database: the given one, and all that `spec.cluster` links to it, in any direction.

    A link to a cluster of another namespace counts if that cluster consents, or if `references` permits it.
    """
    by_key = {_key(cluster): cluster for cluster in clusters}
    edges = [edge for obj in by_key.values() if (edge := _edge(obj))]
    edges = [(a, b) for a, b in edges if _may_refer(references, by_key, a[0], b)]
    found, size = {key}, 0
    while size < len(found):
        size = len(found)
        found |= {end for edge in edges if not found.isdisjoint(edge) for end in edge}
    return found


def _key(cluster: Object) -> ClusterKey:
    return cluster.metadata.namespace, cluster.metadata.name


def _may_refer(
    references: ReferencePolicy, there: Mapping[ClusterKey, Object], source: str, target: ClusterKey
) -> bool:
    return references.judge(source, target[0], there.get(target)) is not Permission.NONE


def _edge(cluster: Object) -> tuple[ClusterKey, ClusterKey] | None:
    """A TidbCluster and the one that it joins; None if it joins none or cannot be decoded."""
    try:
        of = cluster.decode_as(_TidbCluster).spec.cluster
    except msgspec.ValidationError:
        return None
    return (_key(cluster), (of.namespace or cluster.metadata.namespace, of.name)) if of else None


def into(restore: Object) -> ClusterKey | None:
    """The cluster (namespace, name) that an unfinished Restore to a point in time writes into; None for other Restores.

    v1.6 waits forever without the override if `clusterNamespace` is missing, and keeps the override for an Invalid
    Restore.
    """
    if b"pitr" not in restore.raw:
        return None  # cheap check first: each sync of each cluster reads all Restores, and few are of this kind
    try:
        found = restore.decode_as(_Restore)
    except msgspec.ValidationError:
        return None  # a Restore that cannot be decoded does not run
    br = found.spec.br
    conditions = (found.status and found.status.conditions) or ()
    held = {condition.type: condition.reason for condition in conditions if condition.status == "True"}
    has_begun = not held.keys().isdisjoint(_BEGUN) or held.get("RetryFailed") in _CHECKED
    goes_on = has_begun and held.keys().isdisjoint(_ENDED) and not restore.metadata.deletion_timestamp
    if found.spec.restore_mode != "pitr" or br is None or not goes_on:
        return None
    return br.cluster_namespace or restore.metadata.namespace, br.cluster
