"""What the kubelet remembers of a pod it runs."""

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
"""How a container has ended of which its node knows nothing."""


def longer(back_off: float, timings: Timings) -> float:
    """The pause after one more failure, in seconds; `back_off` is the pause before it, 0 where there was none."""
    return min(2 * back_off or timings.crash_back_off, timings.crash_back_off_cap)


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps a container from its first start, if anything does: why, in words, and in which pause of a pull."""

    reason: str = ""
    message: str = ""
    until: float | None = None
    """When this attempt to pull its image ends or, after one that failed, the next one may begin."""
    back_off: float = 0.0


@dataclass(frozen=True, slots=True)
class End:
    """One end of a container, and from when until when it ran before, as texts."""

    how: Exit
    started: str
    finished: str


@dataclass(slots=True)
class ContainerRun:
    """One container. Clock times are `*_at`; stamps are wall time as texts."""

    name: str
    image: str
    running: Running | None = None
    hold: Hold = Hold()
    start_at: float | None = None
    outputs: list[Output] = field(default_factory=list)
    """What it has printed in its last run and in the one before, the newest last."""
    started_at: float = 0.0
    started_stamp: str = ""
    ready: bool = False
    turns_at: float | None = None
    """When enough probes in a row will have said the opposite of `ready`."""
    renews_at: float | None = None
    """When it will see the change of a Secret that it mounts."""
    restarts: int = 0
    crashes: int = 0
    ends: tuple[End, ...] = ()
    """How it has ended last, and before that."""
    told_until: float | None = None
    """Until when its status tells of its end alone, and not of what comes of it."""
    restart_at: float | None = None
    back_off: float = 0.0
    finished: bool = False
    """Whether it has ended and is not started again."""

    def end(self, how: Exit, stamp: str) -> None:
        """The process ended, and the pod's restart policy leaves it at that."""
        self.finished = True
        self._note(how, stamp)

    def crashed(self, how: Exit, now: float, stamp: str, timings: Timings) -> None:
        """The process ended on its own: start it again, at once the first time, later and later after that."""
        if now - self.started_at > 2 * timings.crash_back_off_cap:
            self.crashes = 0
        self.back_off = longer(self.back_off, timings) if self.crashes else 0.0
        self.crashes += 1
        self.restart_at = now + self.back_off
        self.told_until = now + min(timings.container_start, self.back_off)
        self._note(how, stamp)

    def was_lost(self, status: Json, stamp: str, *, for_good: bool) -> None:
        """Its node, which ran it by that status, has started anew, and knows nothing of how it has ended.

        `for_good`: the pod's restart policy leaves it at that.
        """
        self.finished = for_good
        self.restarts = status["restartCount"] + 1
        self.ends = (End(LOST, status["state"]["running"]["startedAt"], stamp),)

    def _note(self, how: Exit, stamp: str) -> None:
        self.running, self.ready, self.turns_at = None, False, None
        self.ends = (*self.ends[-1:], End(how, self.started_stamp, stamp))


@dataclass(frozen=True, slots=True)
class Rest:
    """A pod for which nothing was left to do before `until`."""

    pod: Json
    until: float
    probed: tuple[tuple[Running, int | None, bool], ...]
    """The process of each container, the port on which it is probed, if it is, and whether it served there."""

    def lasts(self, pod: Json, now: float) -> bool:
        """Whether nothing is to be done yet, since all is as it was."""
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
    """One pod on its way up, running, or on its way down."""

    node: str
    address: str
    containers: dict[str, ContainerRun]
    initialized: dict[str, str] = field(default_factory=dict)
    """Finished init containers and when."""
    has_address: bool = False
    """Whether its volumes were mounted, after which it gets its address."""
    prepared: bool = False
    """Whether its init containers have run, too."""
    hold: Hold = Hold()
    """What keeps the init container that is next."""
    init_until: float | None = None
    init_back_off: float = 0.0
    init: Running | None = None
    """The init container that runs."""
    init_ends: dict[str, list[Exit]] = field(default_factory=dict)
    """How each init container has ended that is started again."""
    init_failed: dict[str, Exit] = field(default_factory=dict)
    """The init container that has failed, where none is started again: the pod has failed with it."""
    started_stamp: str = ""
    evicted: str = ""
    """Why its node has ended it for good."""
    stop_at: float | None = None
    """When the preStop hooks of a pod that is deleted have run."""
    kill_at: float | None = None
    written: Json | None = None
    reported: set[str] = field(default_factory=set)
    told: Json | None = None
    """The pod whose status tells all of `told_facts`, so that there is nothing to write."""
    told_facts: tuple[object, ...] = ()
    rest: Rest | None = None
    """What it rests on until something changes, if it does."""

    def facts(self) -> tuple[object, ...]:
        """All that a status can tell of it: while this stays, so does the status."""
        ends = sum(len(each) for each in self.init_ends.values())
        counts = (len(self.initialized), len(self.init_failed), ends)
        return (_OF_POD(self), counts, *map(_OF_CONTAINER, self.containers.values()))

    @property
    def succeeded(self) -> bool:
        """Whether all containers have ended well."""
        return all(bool(each.ends) and each.ends[-1].how.code == 0 for each in self.containers.values())

    @property
    def started(self) -> bool:
        """Whether all of its containers were started once."""
        return all(container.started_stamp or container.ends for container in self.containers.values())


def _values(kind: type, *without: str) -> Callable[[object], object]:
    """Reads the fields of a dataclass."""
    return attrgetter(*(each.name for each in fields(kind) if each.name not in without))


_OF_CONTAINER = _values(ContainerRun, "outputs")
_OF_POD = _values(
    PodRun,
    "containers",
    "initialized",
    "init_ends",
    "init_failed",
    "written",
    "reported",
    "told",
    "told_facts",
    "rest",
)
