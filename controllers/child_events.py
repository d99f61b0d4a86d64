"""Event handlers of pods and claims: changes of fields that decisions read enqueue the cluster (lifecycle.md 1.1)."""

from collections.abc import Callable

from controllers.enqueueing import DETAIL, NEWS, Enqueue, is_resync, priority_of_add
from informers.handlers import ResourceEventHandlerDetailedFuncs
from informers.tombstones import LastKnown, last_known_object
from kube.objects import Object
from member.labels import CONTROLLER_REVISION_HASH, POD_SCHEDULING, PVC_DEFER_DELETING
from member.observed.claims import Claim
from member.observed.pod import Pod

_MARKS = (PVC_DEFER_DELETING, POD_SCHEDULING)


def of_clusters_of(
    clusters_of: Callable[[Object], list[Object]],
    enqueue: Enqueue,
    seen: Callable[[Object], tuple[object, ...]],
    news: Callable[[Object], tuple[object, ...]] | None = None,
) -> ResourceEventHandlerDetailedFuncs:
    """A handler that enqueues the clusters of an object when it is created, deleted, or a field in `seen` changes.

    With `news`, only deletions and changes of the fields in `news` have the priority NEWS; creations and changes of
    other fields in `seen` have DETAIL.
    """

    def tell(obj: Object | None, priority: int = NEWS) -> None:
        for cluster in clusters_of(obj) if obj else ():
            enqueue(cluster.key, priority)

    def on_add(obj: Object, is_in_initial_list: bool) -> None:
        tell(obj, DETAIL if news and not is_in_initial_list else priority_of_add(is_in_initial_list))

    def on_update(old: Object, new: Object) -> None:
        if is_resync(old, new):
            return
        if (news or seen)(old) != (news or seen)(new):
            tell(new)
        elif seen(old) != seen(new):
            tell(new, DETAIL)

    def on_delete(deleted: LastKnown) -> None:
        tell(last_known_object(deleted))

    return ResourceEventHandlerDetailedFuncs(on_add, on_update, on_delete)


def seen_of_pod(pod: Object) -> tuple[object, ...]:
    """The fields of a pod that decisions read."""
    seen = pod.decode_as(Pod)
    revision = pod.metadata.labels.get(CONTROLLER_REVISION_HASH)
    return pod.metadata.uid, seen.status.phase, seen.is_ready, seen.trouble, seen.spec.node_name, revision


def news_of_pod(pod: Object) -> tuple[object, ...]:
    """The fields of a pod that stages wait for."""
    seen = pod.decode_as(Pod)
    return pod.metadata.uid, seen.is_ready, seen.trouble


def seen_of_claim(claim: Object) -> tuple[object, ...]:
    """The fields of a claim that decisions read."""
    seen = claim.decode_as(Claim)
    return *news_of_claim(claim), seen.status.phase, seen.status.capacity.storage


def news_of_claim(claim: Object) -> tuple[object, ...]:
    """The fields of a claim that stages wait for."""
    meta = claim.metadata
    return meta.uid, meta.deletion_timestamp, tuple(meta.annotations.get(key) for key in _MARKS)
