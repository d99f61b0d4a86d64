"""Pods as decisions read them: their state, which of them belong to a cluster, and the revision that they run.

Labels select the pods and claims of a cluster, the controller decides (lifecycle.md 4.1, 11.4). Several clusters may
share an instance label, and any user can set it. A pod belongs to the cluster if it has the name and the StatefulSet of
one of its pods. An orphan needs only the name, because the StatefulSet will adopt it. Comparing names instead of UIDs
is enough: only one StatefulSet has a name, and the operator checks its owner before each write. A pod that an earlier
StatefulSet of this name has left occupies the name of a pod of the cluster.
"""

from collections.abc import Callable, Collection, Sequence
from operator import attrgetter

from apis.ordinals import desired_ordinals
from kube.objects import Json, Object
from kube.resources import CONTROLLER_REVISIONS, PODS, REPLICA_SETS, STATEFUL_SETS
from kube.semantic import covers
from member import labels
from member.context import ClusterContext, LabelledPods
from member.labels import base_labels, selector_text
from member.naming import member_name
from member.observed.pod import Pod, is_in_advanced

_DISCOVERY = "discovery"

_REPLICA_SET, _STATEFUL_SET = ((resource.api_version, resource.kind) for resource in (REPLICA_SETS, STATEFUL_SETS))
"""Version and kind of owners of pods."""

_NAME = attrgetter("metadata.name")


def is_pod_of(cluster: str, pod: Object) -> bool:
    """True if a pod with a cluster's labels is its own: its StatefulSet or Discovery controls it, or nothing does."""
    component, owner = pod.metadata.labels.get(labels.COMPONENT, ""), pod.metadata.controller
    workload = f"{cluster}-{component}"
    if component == _DISCOVERY:
        of_deployment = owner is not None and (owner.api_version, owner.kind) == _REPLICA_SET
        return of_deployment and pod.metadata.name.startswith(f"{workload}-")
    stem, _, ordinal = pod.metadata.name.rpartition("-")
    if stem != workload or not ordinal.isdecimal():
        return False
    if owner is None:
        return True
    is_in_a_set = (owner.api_version, owner.kind) == _STATEFUL_SET or is_in_advanced(pod)
    return is_in_a_set and owner.name == workload


def is_own_pod(ctx: ClusterContext, pod: Object) -> bool:
    """True if `is_pod_of`, or if the pod's controller has the UID of the cluster's StatefulSet.

    The UID also identifies pods whose owner reference another client has damaged.
    """
    if is_pod_of(ctx.name, pod):
        return True
    live = ctx.stateful_set(pod.metadata.labels.get(labels.COMPONENT, ""))
    return live is not None and is_controlled_by(pod, live.metadata.uid) and controls(ctx.owner.metadata.uid, live)


def is_controlled_by(obj: Object, uid: str) -> bool:
    """True if the owner with this UID controls the object."""
    controller = obj.metadata.controller
    return controller is not None and controller.uid == uid


def controls(uid: str, obj: Object) -> bool:
    """True if the owner with this UID controls the object, or can adopt it because it has no controller."""
    controller = obj.metadata.controller
    return controller is None or controller.uid == uid


def pods_of(ctx: ClusterContext, kind: str) -> Sequence[Object]:
    """The cached pods of a component, by name; none while a foreign StatefulSet has the component's name."""
    if kind not in ctx.pods:
        ctx.pods[kind] = _cached(ctx, kind)
    return ctx.pods[kind]


def _cached(ctx: ClusterContext, kind: str) -> Sequence[Object]:
    live = ctx.stateful_set(kind)
    if live is not None and not controls(ctx.owner.metadata.uid, live):
        return ()
    return [pod for pod in labelled_pods(ctx).own if pod.metadata.labels.get(labels.COMPONENT) == kind]


def labelled_pods(ctx: ClusterContext) -> LabelledPods:
    """The cached pods with the labels of the cluster, by name; its own include the pods of Discovery."""
    known, changes = ctx.labelled_pods, ctx.listers.pods.changes
    if known is None or known.changes != changes:
        found = ctx.listers.pods.list(ctx.namespace, labels.cluster_labels(ctx.tc))
        own, others = (known.own, known.others) if known and known.found == found else _divided(ctx, found)
        known = ctx.labelled_pods = LabelledPods(changes, found, own, others)
    return known


def _divided(ctx: ClusterContext, pods: Sequence[Object]) -> tuple[list[Object], list[Object]]:
    """The cluster's own pods, and the others."""
    own, others = list[Object](), list[Object]()
    for pod in sorted(pods, key=_NAME):
        (own if is_own_pod(ctx, pod) else others).append(pod)
    return own, others


def read_pods(ctx: ClusterContext, kind: str) -> list[Object]:
    """The pods of a component, read live, by name. Raises ApiError, TransportError."""
    carried = selector_text(base_labels(ctx.tc, kind))
    found = ctx.deps.client.list_page(PODS, ctx.namespace, label_selector=carried).items
    return sorted([pod for pod in found if is_own_pod(ctx, pod)], key=_NAME)


def wanted_pods(ctx: ClusterContext, component: str) -> list[str]:
    """The names of the pods that spec and failover require, by ordinal."""
    name = member_name(ctx.tc, component)
    return [f"{name}-{ordinal}" for ordinal in desired_ordinals(ctx.tc, component).ordinals]


def ready_pods(pods: Sequence[Object]) -> list[Object]:
    """The pods whose Ready condition is True."""
    return [pod for pod in pods if pod.decode_as(Pod).is_ready]


def started_pods(pods: Sequence[Object], container: str) -> set[str]:
    """The names of the pods in which this container has ever started."""
    return {pod.metadata.name for pod in pods if pod.decode_as(Pod).has_started(container)}


def none_has_image(ctx: ClusterContext, kind: str, image: str) -> bool:
    """True if pods of a component use this image, and none of them can pull it."""
    pods = (pod.decode_as(Pod) for pod in pods_of(ctx, kind))
    asking = [pod for pod in pods if any(container.image == image for container in pod.spec.containers)]
    return bool(asking) and all(pod.lacks_image for pod in asking)


_NAMED = ("containers", "initContainers", "volumes")
"""Lists in a pod's spec to which Kubernetes and webhooks add items."""
_NODES = ("nodeSelector", "affinity")
"""Fields that select nodes. Nothing adds to them, so a pod with more than the template is of another revision."""


def live_revisions(ctx: ClusterContext, stateful_set: Json) -> set[str]:
    """The names of the existing revisions of a StatefulSet. Raises ApiError, TransportError."""
    selector = labels.selector_text(stateful_set["spec"]["selector"].get("matchLabels") or {})
    found = ctx.deps.client.list_page(CONTROLLER_REVISIONS, ctx.namespace, label_selector=selector).items
    return {obj.metadata.name for obj in found}


def is_mislabelled(stateful_set: Json, pod: Object, revisions: Callable[[Json], Collection[str]]) -> bool:
    """True if a pod's label names no existing revision, although its spec contains all that the newest revision says.

    False during a roll. `revisions` is called only if needed.
    """
    status, revision = stateful_set.get("status") or {}, pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH)
    if revision == status.get("updateRevision") or status.get("currentRevision") != status.get("updateRevision"):
        return False
    if not _matches_template(stateful_set["spec"]["template"]["spec"], pod):
        return False
    # a roll that was reverted leaves pods of a revision that is neither the current nor the newest one
    return not (revision and revision in revisions(stateful_set))


def _matches_template(template: Json, pod: Object) -> bool:
    """True if a pod has everything that the template's spec says."""
    spec = pod.decode()["spec"]
    rest = {key: value for key, value in template.items() if key not in _NAMED}
    if any(spec.get(key) != template.get(key) for key in _NODES):
        return False
    return covers(spec, rest) and all(covers(_by_name(spec.get(key)), _by_name(template.get(key))) for key in _NAMED)


def _by_name(items: list[Json] | None) -> Json:
    """The items of a list by name, and their mounts by path: Kubernetes adds a mount for the account's token."""
    return {
        item["name"]: item | {"volumeMounts": {mount["mountPath"]: mount for mount in item.get("volumeMounts") or ()}}
        for item in items or ()
    }
