"""Pods as decisions read them: their state, which of them belong to a cluster, and the revision that they run.

Labels select the pods and claims of a cluster, the controller decides (lifecycle.md 4.1, 11.4). Several clusters may
share an instance label, and any user can set it. A pod belongs to the cluster if it has the name and the StatefulSet of
one of its pods. An orphan needs only the name, because the StatefulSet will adopt it. Comparing names instead of UIDs
is enough: only one StatefulSet has a name, and the operator checks its owner before each write. A pod that an earlier
StatefulSet of this name has left occupies the name of a pod of the cluster.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from apis.ordinals import desired_ordinals
from kube.objects import Json, Object
from kube.resources import ADVANCED_STATEFUL_SETS, CONTROLLER_REVISIONS, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from kube.semantic import covers
from member import labels
from member.context import ClusterContext
from member.labels import base_labels, selector_text
from member.naming import pod_name

_ON_THE_WAY = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons for which a container waits during a normal start."""

OF_IMAGES = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
"""Reasons for which a container waits because its image is missing."""

OF_CONFIGURATION = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
"""Reasons whose message says what is missing, e.g. a Secret."""


_CRASHES = "CrashLoopBackOff"
OFTEN = 2
"""The number of restarts after which the operator expects that the container ends again."""


class PodCondition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerWaiting(msgspec.Struct, frozen=True):
    """Why a container does not run."""

    reason: str = ""
    message: str = ""


class ContainerRunning(msgspec.Struct, frozen=True, rename="camel"):
    """The start time of a running container, in whole seconds."""

    started_at: str | None = None


class ContainerTerminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container has ended."""

    reason: str = ""
    exit_code: int = 0
    message: str = ""

    @property
    def told(self) -> str:
        """The end in words, e.g. "Error, exit code 1"."""
        return f"{self.reason or 'ended'}, exit code {self.exit_code}"


class ContainerState(msgspec.Struct, frozen=True):
    """The state of a container."""

    waiting: ContainerWaiting | None = None
    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of one container of a pod."""

    name: str
    image: str = ""
    restart_count: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)

    @property
    def trouble(self) -> str:
        """Why the container does not run, in Kubernetes' words; empty if it runs or is starting.

        The registry's message about an image is left out: it may contain more than a condition should show.
        """
        waiting = self.state.waiting
        if self.backs_off:
            ended = self.state.terminated or self.last_state.terminated
            return f"container {self.name}: {_CRASHES}{f': {ended.told}' if ended else ''}"
        if waiting is None or not waiting.reason or waiting.reason in _ON_THE_WAY:
            return ""
        detail = waiting.message if waiting.reason in OF_CONFIGURATION else ""
        if waiting.reason in OF_IMAGES:
            detail = self.image
        # Kubernetes alternates between the two reasons; always showing one avoids status changes
        reason = "ImagePullBackOff" if waiting.reason == "ErrImagePull" else waiting.reason
        return f"container {self.name}: {reason}{detail and f': {detail}'}"

    @property
    def backs_off(self) -> bool:
        """True if the container has ended and waits for its restart; Kubernetes reports the wait with a delay."""
        waiting, ended = self.state.waiting, self.state.terminated
        if waiting is not None:
            return waiting.reason == _CRASHES
        return ended is not None and ended.exit_code != 0 and self.restart_count > 0

    @property
    def crashes(self) -> str:
        """How a container that ends repeatedly last ended, also while it runs again; empty for other containers."""
        ended = self.state.terminated or (self.last_state.terminated if self.restart_count >= OFTEN else None)
        return f"container {self.name}: {_CRASHES}: {ended.told}" if ended and ended.exit_code else ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a pod's status that decisions read."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Container(msgspec.Struct, frozen=True):
    """One container in a pod's spec."""

    name: str
    image: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a pod's spec that decisions read."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()


class Pod(msgspec.Struct, frozen=True):
    """The part of a pod that decisions read."""

    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def is_ready(self) -> bool:
        """True if the pod's Ready condition is True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def is_unschedulable(self) -> bool:
        """True if the scheduler has found no node for the pod."""
        return any(c.type == "PodScheduled" and c.status == "False" for c in self.status.conditions)

    @property
    def is_marked_unheard(self) -> bool:
        """True if the control plane has marked that the kubelet of the pod does not report.

        It then sets Ready to False and leaves ContainersReady at True, which no kubelet does. Older versions set
        NodeLost.
        """
        given = {each.type: each.status for each in self.status.conditions}
        if self.status.phase == "Unknown" or self.status.reason == "NodeLost" or given.get("Ready") == "Unknown":
            return True
        return given.get("Ready") == "False" and given.get("ContainersReady") == "True"

    def is_running(self, container: str) -> bool:
        """True if a container of the pod runs, according to the last report of its kubelet."""
        of_name = (each for each in self.status.container_statuses if each.name == container)
        return any(each.state.running for each in of_name)

    @property
    def is_crash_looping(self) -> bool:
        """True if the pod is not Ready because of a container that was restarted twice or more."""
        statuses = self.status.container_statuses
        return not self.is_ready and any(each.restart_count >= OFTEN and self._may_be_why(each) for each in statuses)

    @property
    def has_run(self) -> bool:
        """True if any container of the pod has ever started."""
        return any(each.restart_count or not each.state.waiting for each in self.status.container_statuses)

    def has_started(self, container: str) -> bool:
        """True if this container of the pod has ever started. (The phase is Running only after all of them have.)"""
        of_name = (each for each in self.status.container_statuses if each.name == container)
        return any(each.state.running or each.state.terminated or each.restart_count for each in of_name)

    @property
    def lacks_image(self) -> bool:
        """True if a container of the pod waits for an image that could not be pulled."""
        waiting = (each.state.waiting for each in self.status.container_statuses)
        return any(each is not None and each.reason in OF_IMAGES for each in waiting)

    @property
    def ready_since(self) -> str:
        """The time of the last change of the Ready condition; empty without that condition."""
        return next((c.last_transition_time or "" for c in self.status.conditions if c.type == "Ready"), "")

    def running_since(self, container: str) -> str:
        """The start time of a running container; empty if it does not run."""
        states = (each.state.running for each in self.status.container_statuses if each.name == container)
        return next((running.started_at or "" for running in states if running), "")

    def restarts(self, container: str) -> int:
        """The number of restarts of a container in this pod."""
        return sum(each.restart_count for each in self.status.container_statuses if each.name == container)

    @property
    def trouble(self) -> str:
        """What keeps the pod from starting, in Kubernetes' words; empty if it is starting normally."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{condition.reason}: {condition.message}"
        return ", ".join(each.trouble for each in self._containers if each.trouble)

    @property
    def backs_off(self) -> bool:
        """True if a container waits for its restart; the delay grows with the number of restarts."""
        return any(each.backs_off for each in self._containers)

    @property
    def crashes(self) -> str:
        """The containers that end repeatedly, and how they end, if the pod is not Ready; otherwise empty."""
        if self.is_ready:
            return ""
        return ", ".join(each.crashes for each in self._containers if each.crashes and self._may_be_why(each))

    def _may_be_why(self, container: ContainerStatus) -> bool:
        """True if the container may be why the pod is not Ready: it does not run, or started after that began."""
        running = container.state.running
        return running is None or (running.started_at or "") >= self.ready_since

    @property
    def _containers(self) -> tuple[ContainerStatus, ...]:
        return (*self.status.init_container_statuses, *self.status.container_statuses)


_DISCOVERY = "discovery"


def is_pod_of(cluster: str, pod: Object) -> bool:
    """True if a pod with a cluster's labels is its own: its StatefulSet or Discovery controls it, or nothing does."""
    component, owner = pod.metadata.labels.get(labels.COMPONENT, ""), pod.metadata.controller
    workload = f"{cluster}-{component}"
    if component == _DISCOVERY:
        of_deployment = owner is not None and _is(REPLICA_SETS, owner.api_version, owner.kind)
        return of_deployment and pod.metadata.name.startswith(f"{workload}-")
    stem, _, ordinal = pod.metadata.name.rpartition("-")
    if stem != workload or not ordinal.isdecimal():
        return False
    return owner is None or (_is(STATEFUL_SETS, owner.api_version, owner.kind) and owner.name == workload)


def is_own_pod(ctx: ClusterContext, pod: Object) -> bool:
    """True if `is_pod_of`, or if the pod's controller has the UID of the cluster's StatefulSet.

    The UID also identifies pods whose owner reference another client has damaged.
    """
    if is_pod_of(ctx.name, pod):
        return True
    live = ctx.stateful_set(pod.metadata.labels.get(labels.COMPONENT, ""))
    return live is not None and is_controlled_by(pod, live.metadata.uid) and controls(ctx.owner.metadata.uid, live)


def is_of_advanced(cluster: str, pod: Object) -> bool:
    """True if an Advanced StatefulSet with the name of the cluster's StatefulSet controls the pod."""
    owner = pod.metadata.controller
    if owner is None or not _is(ADVANCED_STATEFUL_SETS, owner.api_version, owner.kind):
        return False
    return owner.name == f"{cluster}-{pod.metadata.labels.get(labels.COMPONENT, '')}"


def is_controlled_by(obj: Object, uid: str) -> bool:
    """True if the owner with this UID controls the object."""
    return obj.metadata.controller is not None and obj.metadata.controller.uid == uid


def controls(uid: str, obj: Object) -> bool:
    """True if the owner with this UID controls the object, or can adopt it because it has no controller."""
    return obj.metadata.controller is None or is_controlled_by(obj, uid)


def _is(resource: Resource, api_version: str, kind: str) -> bool:
    return (resource.api_version, resource.kind) == (api_version, kind)


def pods_of(ctx: ClusterContext, kind: str) -> Sequence[Object]:
    """The cached pods of a component, by name; none while a foreign StatefulSet has the component's name."""
    if kind not in ctx.pods:
        ctx.pods[kind] = _cached(ctx, kind)
    return ctx.pods[kind]


def _cached(ctx: ClusterContext, kind: str) -> Sequence[Object]:
    live = ctx.stateful_set(kind)
    if live is not None and not controls(ctx.owner.metadata.uid, live):
        return ()
    return _own(ctx, ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, kind)))


def read_pods(ctx: ClusterContext, kind: str) -> list[Object]:
    """The pods of a component, read live, by name. Raises ApiError, TransportError."""
    carried = selector_text(base_labels(ctx.tc, kind))
    return _own(ctx, ctx.deps.client.list_page(PODS, ctx.namespace, label_selector=carried).items)


def _own(ctx: ClusterContext, pods: Sequence[Object]) -> list[Object]:
    return sorted((pod for pod in pods if is_own_pod(ctx, pod)), key=lambda pod: pod.metadata.name)


def wanted_pods(ctx: ClusterContext, component: str) -> list[str]:
    """The names of the pods that spec and failover require, by ordinal."""
    return [pod_name(ctx.tc, component, ordinal) for ordinal in desired_ordinals(ctx.tc, component)]


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
    return {each.metadata.name for each in found}


def is_mislabelled(stateful_set: Json, pod: Object, revisions: Callable[[Json], Collection[str]]) -> bool:
    """True if a pod's label names no existing revision, although its spec contains all that the newest revision says.

    False during a roll. `revisions` is called only if needed.
    """
    status, told = stateful_set.get("status") or {}, pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH)
    if told == status.get("updateRevision") or status.get("currentRevision") != status.get("updateRevision"):
        return False
    if not _is_made_from(stateful_set["spec"]["template"]["spec"], pod):
        return False
    # a roll that was reverted leaves pods of a revision that is neither the current nor the newest one
    return not (told and told in revisions(stateful_set))


def _is_made_from(template: Json, pod: Object) -> bool:
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
