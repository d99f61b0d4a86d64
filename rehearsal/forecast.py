"""What a change does to a cluster, judged from frames: what was seen at each moment of a rehearsal. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from controllers.conditions import PAUSED
from member.lifecycle.suspend import SUSPENDED
from member.outcome import DONE

End: TypeAlias = Literal["done", "held", "refused", "stuck"]
Act: TypeAlias = Literal["restarts", "starts", "leaves"]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod in a frame. `node` is empty until it is scheduled."""

    uid: str
    component: str
    node: str
    is_ready: bool
    is_leaving: bool


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of a database, and how many of them are hurt.

    - `without_spare`: one more store lost, and they lose their majority
    - `without_majority`: they can be neither read nor written
    - `without_copy`: no store with a copy runs
    - `leaderless`: they have a majority, which has not elected a leader yet
    """

    total: int
    without_spare: int = 0
    without_majority: int = 0
    without_copy: int = 0
    leaderless: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """A cluster at one moment.

    `at`: seconds since the change. `replicas`: what the StatefulSets request, by component. `reason` and `message` are
    of the condition Progressing, whose `is_waiting` is its status; `is_ready` is the status of Ready. `warnings` name
    fields of the spec that have no effect. `lost` are the pods that the operator has recorded as lost, with their
    components. `regions` are known in a drill.
    """

    at: float
    pods: Mapping[str, Pod]
    replicas: Mapping[str, int]
    is_ready: bool
    is_waiting: bool
    reason: str
    message: str
    warnings: Sequence[str] = ()
    lost: Mapping[str, str] = field(default_factory=dict)
    regions: Regions | None = None

    @property
    def is_over(self) -> bool:
        """True if nothing is left to do."""
        return self.is_ready and self.reason == DONE

    @property
    def is_held(self) -> bool:
        """True if the spec suspends or pauses the cluster, so that nothing more happens."""
        return self.reason in _HELD

    @property
    def is_refused(self) -> bool:
        """True if the operator rejects the spec, or a part of it."""
        return not self.is_waiting and not self.is_held and self.reason not in ("", DONE)

    def looks_like(self, other: "Frame") -> bool:
        """True if only the time and the words have changed, e.g. the number of leaders that a wait still counts."""
        mine, others = (
            (frame.pods, frame.replicas, frame.reason, frame.lost, frame.regions) for frame in (self, other)
        )
        return mine == others

    def ready(self, component: str) -> int:
        """The number of pods of a component that serve."""
        return sum(pod.component == component and pod.is_ready and not pod.is_leaving for pod in self.pods.values())


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one pod.

    `begins` is when it is deleted, or created if there was none; `ends` is when it is Ready, or gone, None if that does
    not happen.
    """

    pod: str
    component: str
    act: Act
    begins: float
    ends: float | None


@dataclass(frozen=True, slots=True)
class Floor:
    """The lowest number of Ready pods of a component during the change, and how many there were before."""

    component: str
    before: int
    lowest: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a component has fewer Ready pods than it needs to serve."""

    component: str
    begins: float
    seconds: float
    ready: int
    needed: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the change does. `end` is how it ends: `message` says why it is held or refused, or what it waits for.

    `warnings` name fields without effect that the change adds.
    """

    end: End
    message: str
    seconds: float
    steps: Sequence[Step] = ()
    floors: Sequence[Floor] = ()
    gaps: Sequence[Gap] = ()
    warnings: Sequence[str] = ()


_HELD = frozenset({SUSPENDED, PAUSED})


def forecast(frames: Sequence[Frame]) -> Forecast:
    """The forecast from the frames of a rehearsal; the first is the one before the change."""
    last = frames[-1]
    steps = sorted(_steps(frames), key=lambda each: (each.begins, each.pod))
    components = dict.fromkeys(pod.component for frame in frames for pod in frame.pods.values())
    floors = [
        Floor(component, frames[0].ready(component), min(frame.ready(component) for frame in frames))
        for component in components
        if frames[0].ready(component)
    ]
    gaps = [gap for component in components if frames[0].ready(component) for gap in _gaps(frames, component)]
    end, seconds = _end(last), max((step.ends or last.at for step in steps), default=0.0)
    message = "" if end == "done" else last.message
    warnings = [warning for warning in last.warnings if warning not in frames[0].warnings]
    return Forecast(end, message, seconds, steps, floors, gaps, warnings)


def after_steps(first: Sequence[Step], then: Forecast) -> Forecast:
    """A forecast that begins once these steps have ended."""
    late = max((step.ends or 0.0 for step in first), default=0.0)
    steps = [
        replace(step, begins=step.begins + late, ends=None if step.ends is None else step.ends + late)
        for step in then.steps
    ]
    gaps = [replace(gap, begins=gap.begins + late) for gap in then.gaps]
    return replace(then, steps=[*first, *steps], gaps=gaps, seconds=then.seconds + late)


def _end(last: Frame) -> End:
    if last.is_over:
        return "done"
    if last.is_held:
        return "held"
    return "refused" if last.is_refused else "stuck"


def _steps(frames: Sequence[Frame]) -> Iterator[Step]:
    for name in dict.fromkeys(name for frame in frames for name in frame.pods):
        yield from _steps_of(name, frames)


def _steps_of(name: str, frames: Sequence[Frame]) -> Iterator[Step]:
    """The life of the pods of one name."""
    begun: float | None = None
    first = frames[0].pods.get(name)
    component = next(frame.pods[name].component for frame in frames if name in frame.pods)
    is_new = first is None
    for before, after in pairwise(frames):
        old, new = before.pods.get(name), after.pods.get(name)
        if begun is None and _goes(old, new):
            begun = after.at
        if begun is not None and new is not None and new.is_ready and not new.is_leaving:
            yield Step(name, component, "starts" if is_new else "restarts", begun, after.at)
            begun, is_new = None, False
    if begun is not None:
        is_gone = name not in frames[-1].pods
        act: Act = "leaves" if is_gone else "starts" if is_new else "restarts"
        yield Step(name, component, act, begun, _gone_at(name, frames) if is_gone else None)


def _gone_at(name: str, frames: Sequence[Frame]) -> float:
    """The first moment after which no frame has a pod of that name."""
    last = max(number for number, frame in enumerate(frames) if name in frame.pods)
    return frames[last + 1].at


def _goes(old: Pod | None, new: Pod | None) -> bool:
    """True if a pod is created, begins to leave, is replaced, or is gone."""
    if old is None or new is None:
        return old is not new
    return new.uid != old.uid or (new.is_leaving and not old.is_leaving)


_MAJORITY = frozenset({"pd", "dm-master"})
_REGIONS = 3
"""The replicas of a region; with fewer stores, each store has a part of every majority."""


def needed(component: str, replicas: int) -> int:
    """The pods of a component that must be Ready for all that it has to serve."""
    if component in _MAJORITY:
        return replicas // 2 + 1
    if component == "tikv":
        return replicas - 1 if replicas >= _REGIONS else replicas
    return min(replicas, 1)


def _gaps(frames: Sequence[Frame], component: str) -> Iterator[Gap]:
    """The gaps of a component, of whose pods a new one is not needed before it is Ready for the first time."""
    before = frames[0].replicas.get(component, 0)
    open_gap: Gap | None = None
    for frame in frames:
        need = needed(component, min(before, frame.replicas.get(component, 0)))
        ready = frame.ready(component)
        if ready < need:
            lowest = min(ready, open_gap.ready) if open_gap else ready
            begins = open_gap.begins if open_gap else frame.at
            open_gap = Gap(component, begins, frame.at - begins, lowest, need)
        elif open_gap:
            yield replace(open_gap, seconds=frame.at - open_gap.begins)
            open_gap = None
    if open_gap:
        yield replace(open_gap, seconds=frames[-1].at - open_gap.begins)
