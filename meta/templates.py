"""The metadata that pods have from their template, if other clients have removed or changed it (R27).

A pod without the operator's labels is in no cache, and its StatefulSet releases it. The operator finds it by its name,
and recognises it by fields that clients cannot change.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from kube.objects import Json, Object, is_observed
from kube.resources import PODS
from member import labels
from member.components import workload_names
from member.context import ClusterContext
from member.objects.stateful_set import ordinals_of
from member.observed.pods import is_mislabelled
from meta.metadata import DesiredMetadata

_UNSEEN, _LOOKED_FOR = "unseen pod", "pod looked for"
_APPEARS = 5.0
"""Seconds within which a new pod appears in the cache."""
_LOOK_AGAIN = 20.0
"""Seconds between live reads of a pod."""


def stateful_sets(ctx: ClusterContext) -> dict[str, Json]:
    """The cached StatefulSets of the cluster, by UID."""
    found = [ctx.stateful_set(name) for name in workload_names(ctx.tc.kind)]
    return {obj.metadata.uid: ctx.tree(obj) for obj in found if obj is not None and not obj.metadata.deletion_timestamp}


def unlabelled_pods(ctx: ClusterContext, sets: Mapping[str, Json], seen: Collection[str]) -> Iterator[Object]:
    """Pods of StatefulSets that the cache lacks: all but those `seen`. Raises ApiError, TransportError."""
    watches = ctx.memory.stopwatches
    for name in watches.known(_UNSEEN):
        if name in seen:
            watches.forget(_UNSEEN, name)
    for uid, stateful_set in sets.items():
        for ordinal in ordinals_of(stateful_set).ordinals:
            name = f"{stateful_set['metadata']['name']}-{ordinal}"
            pod = None if name in seen else _looked_for(ctx, name)
            if pod is not None and not pod.metadata.deletion_timestamp and _set_of(pod, {uid: stateful_set}):
                yield pod


def _looked_for(ctx: ClusterContext, name: str) -> Object | None:
    """A pod that has been missing from the cache for longer than a new pod would be; read live at intervals."""
    watches, clock = ctx.memory.stopwatches, ctx.deps.clock
    unseen = watches.look(_UNSEEN, name, clock).seconds
    if unseen < _APPEARS or not watches.is_due(_LOOKED_FOR, name, _LOOK_AGAIN, clock):
        return None
    return ctx.deps.client.find(PODS, name, ctx.namespace)


def of_template(sets: Mapping[str, Json], pod: Object, revisions: Callable[[Json], Collection[str]]) -> DesiredMetadata:
    """The labels and annotations that a pod has from its StatefulSet, one of `sets` by UID.

    `revisions` is called if needed.

    These are the selector's labels, and all of the template's if the pod runs the newest revision. A pod with an
    unknown revision, or none, counts as running the newest if its spec agrees in everything and no rolling update runs.
    """
    owner = _set_of(pod, sets)
    if owner is None:
        return DesiredMetadata()
    selected: dict[str, str] = owner["spec"]["selector"].get("matchLabels") or {}
    status, template = owner.get("status") or {}, owner["spec"]["template"]
    newest = status.get("updateRevision", "")
    if not newest or not is_observed(owner):
        return DesiredMetadata(selected)
    current = pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH)
    if current != newest and not is_mislabelled(owner, pod, revisions):
        return DesiredMetadata(selected)
    meta = template.get("metadata") or {}
    revision = {labels.CONTROLLER_REVISION_HASH: newest}
    return DesiredMetadata({**(meta.get("labels") or {}), **selected, **revision}, meta.get("annotations") or {})


def _set_of(pod: Object, sets: Mapping[str, Json]) -> Json | None:
    """The StatefulSet that controls a pod, or that created it before other clients removed the owner."""
    controller = pod.metadata.controller
    return _creator(pod, sets.values()) if controller is None else sets.get(controller.uid)


def _creator(pod: Object, sets: Iterable[Json]) -> Json | None:
    tree = pod.decode()
    made = (tree["metadata"].get("generateName"), tree["spec"].get("hostname"), tree["spec"].get("subdomain"))
    for each in sets:
        if made == (f"{each['metadata']['name']}-", pod.metadata.name, each["spec"].get("serviceName")):
            return each
    return None
