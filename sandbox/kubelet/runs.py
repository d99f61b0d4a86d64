"""The kubelet's memory of a running pod."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter

from kube.objects import Json
from sandbox.dataplane.network import Running
from sandbox.dataplane.output import Output
from sandbox.dataplane.processes import Exit
from sandbox.timings import Timings

LOST = Exit(
    137,
    "The container could not be located when the pod was deleted.  The container used to be Running",
    "ContainerStatusUnknown",
)
"""The end of a container that its node knows nothing about."""


def longer(back_off: float, timings: Timings) -> float:
    """The pause after a further failure, in seconds; `back_off` is the previous pause, initially 0."""
    return min(2 * back_off or timings.crash_back_off, timings.crash_back_off_cap)


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a container has not started yet, in words, and the pause of a failed pull."""

    reason: str = ""
    message: str = ""
    until: float | None = None
    """When this attempt to pull the image ends or, after a failure, the next one may begin."""
    back_off: float = 0.0


@dataclass(frozen=True, slots=True)
class End:
    """One end of a container, with start and end of that run as texts."""

    how: Exit
    started: str
    finished: str


@dataclass(slots=True)
class ContainerRun:
    """A container. Clock times are `*_at`; stamps are wall-clock texts."""

    name: str
    image: str
    running: Running | None = None
    hold: Hold = Hold()
    start_at: float | None = None
    outputs: list[Output] = field(default_factory=list)
    """The output of the last run and of the previous one, newest last."""
    started_at: float = 0.0
    started_stamp: str = ""
    ready: bool = False
    turns_at: float | None = None
    """When enough consecutive probes will have seen the opposite of `ready`."""
    renews_at: float | None = None
    """When it will see the change of a mounted Secret."""
    hook: Running | None = None
    """Its postStart hook, until whose end it is not ready."""
    restarts: int = 0
    crashes: int = 0
    ends: tuple[End, ...] = ()
    """Its last end and the one before."""
    told_until: float | None = None
    """Until when its status reports only its end, not the consequences."""
    restart_at: float | None = None
    back_off: float = 0.0
    finished: bool = False
    """True if it has ended and is not restarted."""

    def end(self, how: Exit, stamp: str) -> None:
        """Record an end after which the restart policy does not restart it."""
        self.finished = True
        self._note(how, stamp)

    def crashed(self, how: Exit, now: float, stamp: str, timings: Timings) -> None:
        """Record an end after which it is restarted: immediately the first time, then after growing pauses."""
        if now - self.started_at > 2 * timings.crash_back_off_cap:
            self.crashes = 0
        self.back_off = longer(self.back_off, timings) if self.crashes else 0.0
        self.crashes += 1
        self.restart_at = now + self.back_off
        self.told_until = now + min(timings.container_start, self.back_off)
        self._note(how, stamp)

    def was_lost(self, status: Json, stamp: str, *, for_good: bool) -> None:
        """Record that its node, on which it ran by that status, was restarted and does not know how it ended.

        `for_good`: the restart policy does not restart it.
        """
        self.finished = for_good
        self.restarts = status["restartCount"] + 1
        self.ends = (End(LOST, status["state"]["running"]["startedAt"], stamp),)

    def _note(self, how: Exit, stamp: str) -> None:
        self.running, self.ready, self.turns_at = None, False, None
        self.ends = (*self.ends[-1:], End(how, self.started_stamp, stamp))


@dataclass(frozen=True, slots=True)
class Rest:
    """A pod without work before `until`."""

    pod: Json
    until: float
    probed: tuple[tuple[Running, int | None, bool], ...]
    """Each container's process, its probed port if any, and whether it served there."""

    def lasts(self, pod: Json, now: float) -> bool:
        """True if there is still nothing to do because nothing has changed."""
        if pod is not self.pod or now >= self.until:
            return False
        for running, port, served in self.probed:
            process = running.process
            serves = port is None or (process.listens(port) and not running.hung)
            if process.exit is not None or serves != served:
                return False
        return True


@dataclass(slots=True)
class PodRun:
    """A pod that starts, runs or ends."""

    node: str
    address: str
    containers: dict[str, ContainerRun]
    initialized: dict[str, str] = field(default_factory=dict)
    """Finished init containers with their times."""
    has_address: bool = False
    """True once its volumes are mounted, after which it gets its address."""
    prepared: bool = False
    """True once its init containers have run as well."""
    hold: Hold = Hold()
    """What keeps the next init container."""
    init_until: float | None = None
    init_back_off: float = 0.0
    init: Running | None = None
    """The running init container."""
    init_ends: dict[str, list[Exit]] = field(default_factory=dict)
    """The ends of init containers that are restarted."""
    init_failed: dict[str, Exit] = field(default_factory=dict)
    """The init container that has failed without a restart, and the pod with it."""
    started_stamp: str = ""
    evicted: str = ""
    """Why its node has evicted it."""
    stop_at: float | None = None
    """When the sleeps of a deleted pod's preStop hooks are over; None after SIGTERM."""
    hooks: dict[str, Running] = field(default_factory=dict)
    """The scripts of its preStop hooks, by container."""
    kill_at: float | None = None
    written: Json | None = None
    reported: set[str] = field(default_factory=set)
    told: Json | None = None
    """The pod whose status already contains all of `told_facts`, so that no write is needed."""
    told_facts: tuple[object, ...] = ()
    rest: Rest | None = None
    """The state that it rests on until a change, if any."""

    def facts(self) -> tuple[object, ...]:
        """All facts that a status can show: while they are unchanged, the status is too."""
        ends = sum(len(each) for each in self.init_ends.values())
        counts = (len(self.initialized), len(self.init_failed), ends)
        return (_OF_POD(self), counts, *map(_OF_CONTAINER, self.containers.values()))

    @property
    def succeeded(self) -> bool:
        """True if all containers have ended successfully."""
        return all(bool(container.ends) and container.ends[-1].how.code == 0 for container in self.containers.values())

    @property
    def started(self) -> bool:
        """True if all containers have been started once."""
        return all(container.started_stamp or container.ends for container in self.containers.values())


def _values(kind: type, *without: str) -> Callable[[object], object]:
    """Reads the fields of a dataclass."""
    return attrgetter(*(each.name for each in fields(kind) if each.name not in without))


_OF_CONTAINER = _values(ContainerRun, "outputs", "hook")
_OF_POD = _values(
    PodRun,
    "containers",
    "initialized",
    "init_ends",
    "init_failed",
    "hooks",
    "written",
    "reported",
    "told",
    "told_facts",
    "rest",
)
