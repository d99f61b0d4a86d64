"""Restores to a point in time, for which TiKV must keep what it would collect as garbage (backup.md 4.4). Reads only.

The cluster that is worked on says so by an annotation that nobody has written: from there it takes the way of all that
users change, and TiKV is restarted with `gc.ratio-threshold = -1` and, when the last such Restore has ended, back.
"""

from collections.abc import Iterable

import msgspec
from msgspec import structs

from apis.tidbcluster import TidbCluster
from kube.objects import Object
from member.labels import RESTORING_TO_POINT_IN_TIME

_BEGUN = ("RetryFailed", "Scheduled", "Running")
"""Conditions of one that was found valid: what is not is not to restart a database."""
_ENDED = ("Complete", "Failed", "Invalid")


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


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


def marked(tc: TidbCluster, restores: Iterable[Object]) -> TidbCluster:
    """The cluster, with the annotation while something is restored into it to a point in time."""
    key = (tc.metadata.namespace, tc.metadata.name)
    if all(into(each) != key for each in restores):
        return tc
    annotations = tc.metadata.annotations | {RESTORING_TO_POINT_IN_TIME: "true"}
    return structs.replace(tc, metadata=structs.replace(tc.metadata, annotations=annotations))


def into(restore: Object) -> tuple[str, str] | None:
    """Namespace and name of the cluster that a Restore to a point in time still needs so; None for any other one.

    v1.6 restores without the override for ever where `clusterNamespace` is left out, and leaves it on for one that is
    Invalid.
    """
    if b"pitr" not in restore.raw:
        return None  # most are not: each sync of each cluster looks at all of them
    try:
        found = restore.decode_as(_Restore)
    except msgspec.ValidationError:
        return None  # nothing is done for one that can't be read
    br = found.spec.br
    conditions = (found.status and found.status.conditions) or ()
    held = {each.type for each in conditions if each.status == "True"}
    goes_on = not held.isdisjoint(_BEGUN) and held.isdisjoint(_ENDED) and not restore.metadata.deletion_timestamp
    if found.spec.restore_mode != "pitr" or br is None or not goes_on:
        return None
    return br.cluster_namespace or restore.metadata.namespace, br.cluster
