"""A pod as decisions read it: its node, its conditions, and what keeps it from being Ready.

`kubectl tidb` imports this module, so it imports no client of the data plane.
"""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from kube.objects import Object
from kube.resources import ADVANCED_STATEFUL_SETS

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
    def description(self) -> str:
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
            return f"container {self.name}: {_CRASHES}{f': {ended.description}' if ended else ''}"
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
        return f"container {self.name}: {_CRASHES}: {ended.description}" if ended and ended.exit_code else ""


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


class Pod(msgspec.Struct, frozen=True, dict=True):
    """The part of a pod that decisions read. What follows from it is computed once for each version of the pod."""

    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @cached_property
    def is_ready(self) -> bool:
        """True if the pod's Ready condition is True."""
        for condition in self.status.conditions:
            if condition.type == "Ready":
                return condition.status == "True"
        return False

    @cached_property
    def is_unschedulable(self) -> bool:
        """True if the scheduler has found no node for the pod."""
        return any(c.type == "PodScheduled" and c.status == "False" for c in self.status.conditions)

    @cached_property
    def is_marked_unheard(self) -> bool:
        """True if the control plane has marked that the kubelet of the pod does not report.

        It then sets Ready to False and leaves ContainersReady at True, which no kubelet does. Older versions set
        NodeLost.
        """
        given = {condition.type: condition.status for condition in self.status.conditions}
        if self.status.phase == "Unknown" or self.status.reason == "NodeLost" or given.get("Ready") == "Unknown":
            return True
        return given.get("Ready") == "False" and given.get("ContainersReady") == "True"

    def is_running(self, container: str) -> bool:
        """True if a container of the pod runs, according to the last report of its kubelet."""
        status = self._by_name.get(container)
        return status is not None and status.state.running is not None

    @cached_property
    def is_crash_looping(self) -> bool:
        """True if the pod is not Ready because of a container that was restarted twice or more."""
        statuses = self.status.container_statuses
        return not self.is_ready and any(
            container.restart_count >= OFTEN and self._may_be_why(container) for container in statuses
        )

    @cached_property
    def has_run(self) -> bool:
        """True if any container of the pod has ever started."""
        return any(status.restart_count or not status.state.waiting for status in self.status.container_statuses)

    def has_started(self, container: str) -> bool:
        """True if this container of the pod has ever started. (The phase is Running only after all of them have.)"""
        status = self._by_name.get(container)
        return status is not None and bool(status.state.running or status.state.terminated or status.restart_count)

    @cached_property
    def lacks_image(self) -> bool:
        """True if a container of the pod waits for an image that could not be pulled."""
        waiting = (status.state.waiting for status in self.status.container_statuses)
        return any(
            container_waiting is not None and container_waiting.reason in OF_IMAGES for container_waiting in waiting
        )

    @cached_property
    def ready_since(self) -> str:
        """The time of the last change of the Ready condition; empty without that condition."""
        for condition in self.status.conditions:
            if condition.type == "Ready":
                return condition.last_transition_time or ""
        return ""

    def running_since(self, container: str) -> str:
        """The start time of a running container; empty if it does not run."""
        status = self._by_name.get(container)
        return (status and status.state.running and status.state.running.started_at) or ""

    def restarts(self, container: str) -> int:
        """The number of restarts of a container in this pod."""
        status = self._by_name.get(container)
        return status.restart_count if status else 0

    @cached_property
    def trouble(self) -> str:
        """What keeps the pod from starting, in Kubernetes' words; empty if it is starting normally."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{condition.reason}: {condition.message}"
        return ", ".join(container.trouble for container in self._containers if container.trouble)

    @cached_property
    def backs_off(self) -> bool:
        """True if a container waits for its restart; the delay grows with the number of restarts."""
        return any(container.backs_off for container in self._containers)

    @cached_property
    def crashes(self) -> str:
        """The containers that end repeatedly, and how they end, if the pod is not Ready; otherwise empty."""
        if self.is_ready:
            return ""
        return ", ".join(
            container.crashes for container in self._containers if container.crashes and self._may_be_why(container)
        )

    def _may_be_why(self, container: ContainerStatus) -> bool:
        """True if the container may be why the pod is not Ready: it does not run, or started after that began."""
        running = container.state.running
        return running is None or (running.started_at or "") >= self.ready_since

    @cached_property
    def _by_name(self) -> Mapping[str, ContainerStatus]:
        """The status of each container, without init containers."""
        return {status.name: status for status in self.status.container_statuses}

    @cached_property
    def _containers(self) -> tuple[ContainerStatus, ...]:
        return (*self.status.init_container_statuses, *self.status.container_statuses)


_ADVANCED_STATEFUL_SET = ADVANCED_STATEFUL_SETS.api_version, ADVANCED_STATEFUL_SETS.kind


def is_in_advanced(pod: Object) -> bool:
    """True if an Advanced StatefulSet controls the pod, so that delete slots of its cluster count."""
    owner = pod.metadata.controller
    return owner is not None and (owner.api_version, owner.kind) == _ADVANCED_STATEFUL_SET
