"""A pod as decisions read it: where it runs, whether it is Ready, and what keeps it from it."""

import msgspec

_ON_THE_WAY = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons for which a container waits as a matter of course."""

OF_IMAGES = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"})
"""Reasons for which a container waits whose image is not there."""

OF_CONFIGURATION = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
"""Reasons whose message says what is missing, such as a Secret."""


_CRASHES = "CrashLoopBackOff"
OFTEN = 2
"""Restarts of a container after which the next end is to be expected."""


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
    """Since when a container runs, in whole seconds."""

    started_at: str | None = None


class ContainerTerminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container has ended."""

    reason: str = ""
    exit_code: int = 0
    message: str = ""

    @property
    def told(self) -> str:
        """The end in words."""
        return f"{self.reason or 'ended'}, exit code {self.exit_code}"


class ContainerState(msgspec.Struct, frozen=True):
    """What a container does."""

    waiting: ContainerWaiting | None = None
    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """One container of a pod."""

    name: str
    image: str = ""
    restart_count: int = 0
    state: ContainerState = msgspec.field(default_factory=ContainerState)
    last_state: ContainerState = msgspec.field(default_factory=ContainerState)

    @property
    def trouble(self) -> str:
        """Why it does not run, in Kubernetes' words; empty when it does, or is on the way.

        What the registry says of an image is left out: it may tell more than should be in a condition.
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
        # the two take turns
        reason = "ImagePullBackOff" if waiting.reason == "ErrImagePull" else waiting.reason
        return f"container {self.name}: {reason}{detail and f': {detail}'}"

    @property
    def backs_off(self) -> bool:
        """Whether it has ended and waits to be started again, which Kubernetes says a moment after the end."""
        waiting, ended = self.state.waiting, self.state.terminated
        if waiting is not None:
            return waiting.reason == _CRASHES
        return ended is not None and ended.exit_code != 0 and self.restart_count > 0

    @property
    def crashes(self) -> str:
        """How it ends each time, also while it runs between two ends; empty where it does not end like that."""
        ended = self.state.terminated or (self.last_state.terminated if self.restart_count >= OFTEN else None)
        return f"container {self.name}: {_CRASHES}: {ended.told}" if ended and ended.exit_code else ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What a decision reads of a pod's status."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Container(msgspec.Struct, frozen=True):
    """One container that a pod asks for."""

    name: str
    image: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a decision reads of a pod's spec."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()


class Pod(msgspec.Struct, frozen=True):
    """A pod, as far as decisions read it."""

    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def is_ready(self) -> bool:
        """Whether the pod's Ready condition is True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def is_unschedulable(self) -> bool:
        """Whether no node has room for the pod, or may have it."""
        return any(c.type == "PodScheduled" and c.status == "False" for c in self.status.conditions)

    @property
    def is_marked_unheard(self) -> bool:
        """Whether the control plane says that the kubelet of the pod does not report.

        It makes the pod not Ready and leaves its containers Ready, which no kubelet reports; older ones say NodeLost.
        """
        given = {each.type: each.status for each in self.status.conditions}
        if self.status.phase == "Unknown" or self.status.reason == "NodeLost" or given.get("Ready") == "Unknown":
            return True
        return given.get("Ready") == "False" and given.get("ContainersReady") == "True"

    def is_running(self, container: str) -> bool:
        """Whether a container of the pod runs, as its kubelet reported last."""
        of_name = (each for each in self.status.container_statuses if each.name == container)
        return any(each.state.running for each in of_name)

    @property
    def is_crash_looping(self) -> bool:
        """Whether a container that was restarted twice or more keeps the pod from being Ready."""
        statuses = self.status.container_statuses
        return not self.is_ready and any(each.restart_count >= OFTEN and self._may_be_why(each) for each in statuses)

    @property
    def has_run(self) -> bool:
        """Whether a container of the pod was ever started."""
        return any(each.restart_count or not each.state.waiting for each in self.status.container_statuses)

    def has_started(self, container: str) -> bool:
        """Whether a container of the pod was ever started: the phase is Running once that holds for all of them."""
        of_name = (each for each in self.status.container_statuses if each.name == container)
        return any(each.state.running or each.state.terminated or each.restart_count for each in of_name)

    @property
    def lacks_image(self) -> bool:
        """Whether a container of the pod waits for an image that could not be pulled."""
        waiting = (each.state.waiting for each in self.status.container_statuses)
        return any(each is not None and each.reason in OF_IMAGES for each in waiting)

    @property
    def ready_since(self) -> str:
        """When the Ready condition last moved; empty when there is none."""
        return next((c.last_transition_time or "" for c in self.status.conditions if c.type == "Ready"), "")

    def running_since(self, container: str) -> str:
        """When a container that runs was started; empty when it does not run."""
        states = (each.state.running for each in self.status.container_statuses if each.name == container)
        return next((running.started_at or "" for running in states if running), "")

    def restarts(self, container: str) -> int:
        """How often a container was started again in this pod."""
        return sum(each.restart_count for each in self.status.container_statuses if each.name == container)

    @property
    def trouble(self) -> str:
        """What keeps the pod from starting, in Kubernetes' words; empty when it is merely on the way."""
        for condition in self.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{condition.reason}: {condition.message}"
        return ", ".join(each.trouble for each in self._containers if each.trouble)

    @property
    def backs_off(self) -> bool:
        """Whether a container that has ended waits to be started again, the longer the more often it has."""
        return any(each.backs_off for each in self._containers)

    @property
    def crashes(self) -> str:
        """Which containers end again and again, and how, where the pod is not Ready; empty where none does."""
        if self.is_ready:
            return ""
        return ", ".join(each.crashes for each in self._containers if each.crashes and self._may_be_why(each))

    def _may_be_why(self, container: ContainerStatus) -> bool:
        """Whether the ends of a container may keep the pod from being Ready: not if it ran on when that began."""
        running = container.state.running
        return running is None or (running.started_at or "") >= self.ready_since

    @property
    def _containers(self) -> tuple[ContainerStatus, ...]:
        return (*self.status.init_container_statuses, *self.status.container_statuses)
