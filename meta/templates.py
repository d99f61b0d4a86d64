"""The metadata that pods have from their template, if other clients have removed or changed it (R27).

A pod without the operator's labels is in no cache, and its StatefulSet releases it. The operator finds it by its name,
and recognises it by fields that clients cannot change.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial

from kube.objects import Json, Object, OwnerReference, is_observed
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


def stateful_sets(ctx: ClusterContext) -> list[Json]:
    """The cached StatefulSets of the cluster."""
    found = (ctx.stateful_set(name) for name in workload_names(ctx.tc.kind))
    return [ctx.tree(obj) for obj in found if obj is not None and not obj.metadata.deletion_timestamp]


def unlabelled_pods(ctx: ClusterContext, sets: Collection[Json], seen: Collection[str]) -> Iterator[Object]:
    """Pods of StatefulSets that the cache lacks. Raises ApiError, TransportError."""
    for stateful_set in sets:
        for ordinal in ordinals_of(stateful_set).ordinals:
            name = f"{stateful_set['metadata']['name']}-{ordinal}"
            pod = _looked_for(ctx, name, name in seen)
            if pod is None or pod.metadata.deletion_timestamp:
                continue
            if _is_pod_of(pod, pod.metadata.controller, stateful_set):
                yield pod


def _looked_for(ctx: ClusterContext, name: str, is_seen: bool) -> Object | None:
    """A pod that has been missing from the cache for longer than a new pod would be; read live at intervals."""
    watches, clock = ctx.memory.stopwatches, ctx.deps.clock
    if is_seen:
        watches.forget(_UNSEEN, name)
        return None
    unseen = watches.look(_UNSEEN, name, clock).seconds
    if unseen < _APPEARS or not watches.is_due(_LOOKED_FOR, name, _LOOK_AGAIN, clock):
        return None
    return ctx.deps.client.find(PODS, name, ctx.namespace)


def of_template(sets: Collection[Json], pod: Object, revisions: Callable[[Json], Collection[str]]) -> DesiredMetadata:
    """The labels and annotations that a pod has from its StatefulSet; `revisions` is called if needed.

    These are the selector's labels, and all of the template's if the pod runs the newest revision. A pod with an
    unknown revision, or none, counts as running the newest if its spec agrees in everything and no rolling update runs.
    """
    owner = next(filter(partial(_is_pod_of, pod, pod.metadata.controller), sets), None)
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


def _is_pod_of(pod: Object, controller: OwnerReference | None, stateful_set: Json) -> bool:
    """True if a StatefulSet controls a pod, or created it before other clients removed the owner."""
    meta = stateful_set["metadata"]
    if controller is not None:
        return bool(controller.uid == meta["uid"])
    tree = pod.decode()
    made = (tree["metadata"].get("generateName"), tree["spec"].get("hostname"), tree["spec"].get("subdomain"))
    return made == (f"{meta['name']}-", pod.metadata.name, stateful_set["spec"].get("serviceName"))
