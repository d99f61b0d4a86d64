"""The change of a cluster that is under way: what has happened to its pods, and what a rehearsal says is left.

Steps of the past are read from pods and from events of StatefulSets. What is left is rehearsed in the background, once
for each step, because a page refreshes faster than a rehearsal computes.
"""

import re
import shlex
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from apis.times import parse_time
from cli import plan
from cli.failures import Failure
from cli.tidb.pods import ClusterPod
from cli.tidb.status.facts import Facts
from cli.tidb.ui.rehearsals import IN_LOG, Rehearse
from cli.timeline import Bar, Timeline, bars_of, span
from kube.objects import Json, condition_of
from ports.clock import Clock
from ports.lazy_log import get_logger
from ports.structs import convert
from rehearsal.film import PATIENCE
from rehearsal.forecast import Act, Forecast, Step

_DELETED = re.compile(r"delete Pod (\S+) in StatefulSet ")
"""The message of an event by which the controller of StatefulSets reports a deletion."""

_GAP = timedelta(seconds=PATIENCE)

_log = get_logger(__name__)

Place = tuple[str, str]
"""The namespace of a cluster, and its name such as `tc/basic`."""


@dataclass(frozen=True, slots=True)
class Past:
    """What has happened to a pod. `ends`: when it was Ready again, or gone; None while it is neither."""

    pod: str
    act: Act
    begins: datetime
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class Change:
    """A change that is under way, up to now. `step` differs from one step of it to the next."""

    generation: int
    steps: Sequence[Past]

    @property
    def step(self) -> object:
        """What a rehearsal of the rest depends on."""
        return self.generation, tuple((past.pod, past.begins) for past in self.steps)


def change_of(facts: Facts, events: Iterable[Json]) -> Change | None:
    """The change of a cluster that is under way, by its pods and the events of StatefulSets; None if it is at rest."""
    conditions = facts.found.cluster.status.conditions
    progressing = next((each for each in conditions if each.type == "Progressing"), None)
    if progressing is None or progressing.status != "True":
        return None
    steps = sorted(_steps(facts, dict(_deletions(events))), key=lambda past: (past.begins, past.pod))
    since = parse_time(progressing.last_transition_time or "")
    return Change(facts.found.object.metadata.generation, _connected(steps, since))


def _deletions(events: Iterable[Json]) -> Iterator[tuple[str, datetime]]:
    """The last time at which each pod was deleted, by its name."""
    for event in sorted(events, key=lambda each: str(each.get("lastTimestamp") or "")):
        deleted, at = _DELETED.match(str(event.get("message") or "")), parse_time(str(event.get("lastTimestamp") or ""))
        if deleted and at and event.get("reason") == "SuccessfulDelete":
            yield deleted[1], at


def _steps(facts: Facts, deletions: Mapping[str, datetime]) -> Iterator[Past]:
    """The last step of each pod but Discovery's, which has no part in a change."""
    for pod in (pod for pod in facts.pods if pod.component != "discovery"):
        meta, deleted = pod.object.metadata, deletions.get(pod.name)
        created, going = parse_time(meta.creation_timestamp or ""), parse_time(meta.deletion_timestamp or "")
        if going:
            yield Past(pod.name, "restarts", min(deleted or going, going), None)
        elif created and deleted and timedelta(0) <= created - deleted < _GAP:
            yield Past(pod.name, "restarts", deleted, _ready_since(pod))
        elif created:
            yield Past(pod.name, "starts", created, _ready_since(pod))
    pods = {pod.name for pod in facts.pods}
    sets = {_set_of(name) for name in pods}
    for name in deletions.keys() - pods:
        if _set_of(name) in sets:
            yield Past(name, "leaves", deletions[name], deletions[name])


def _set_of(pod: str) -> str:
    return pod.rpartition("-")[0]


def _ready_since(pod: ClusterPod) -> datetime | None:
    conditions = (pod.object.decode().get("status") or {}).get("conditions") or ()
    ready = condition_of(conditions, "Ready")
    return parse_time(str(ready.get("lastTransitionTime") or "")) if ready.get("status") == "True" else None


def _connected(steps: Sequence[Past], since: datetime | None) -> Sequence[Past]:
    """The last steps, between which never so much time passes as after which a change counts as stuck."""
    first = len(steps)
    begins = since
    while first and (begins is None or begins - (steps[first - 1].ends or steps[first - 1].begins) <= _GAP):
        first -= 1
        begins = min(begins or steps[first].begins, steps[first].begins)
    return steps[first:]


# What is left


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a rehearsal that began `at` a time says is left, or why it says nothing; None while it has not ended yet."""

    step: object
    generation: int
    is_computing: bool
    at: datetime
    forecast: Forecast | None = None
    differences: Sequence[str] = ()
    problem: str = ""


class Outlooks:
    """The outlooks of changes: a rehearsal in the background for each step, one at a time for each cluster."""

    def __init__(self, rehearse: Rehearse, clock: Clock) -> None:
        self._rehearse = rehearse
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[Place, Outlook] = {}

    def of(self, place: Place, change: Change) -> Outlook:
        """What is known now. It begins a rehearsal if the change has made a step since the last one."""
        with self._lock:
            known = self._known.get(place)
            if known is not None and (known.is_computing or known.step == change.step):
                return known
            began = Outlook(change.step, change.generation, is_computing=True, at=self._clock.wall())
            if known is not None and known.generation == change.generation:
                # until the rehearsal ends, the last one shows what was left before this step
                shown = replace(known, is_computing=True, problem="")
            else:
                shown = began
            # a thread that cannot start leaves nothing that the page would wait for
            threading.Thread(target=self._compute, args=(place, began), name="outlook", daemon=True).start()
            self._known[place] = shown
        return shown

    def retry(self, place: Place) -> None:
        """Let the next question about a change begin another rehearsal if the last one said nothing."""
        with self._lock:
            known = self._known.get(place)
            if known is not None and known.problem:
                del self._known[place]

    def forget(self, place: Place) -> None:
        """Drop what is known about a cluster that is at rest."""
        with self._lock:
            self._known.pop(place, None)

    def _compute(self, place: Place, began: Outlook) -> None:
        try:
            document = self._rehearse(arguments(place))
            found = document["clusters"][0]
            left = convert(found | {"floors": found["lowest"]}, Forecast)
            ended = replace(began, is_computing=False, forecast=left, differences=document["differences"])
        except Failure as failure:
            ended = replace(began, is_computing=False, problem=str(failure))
        except Exception as error:
            # the thread ends here, and a page would wait for its answer for ever
            _log.exception("what is left of a change is not known", cluster=place)
            ended = replace(began, is_computing=False, problem=f"{type(error).__name__}: {error}; {IN_LOG}")
        with self._lock:
            self._known[place] = ended


def arguments(place: Place) -> Sequence[str]:
    """The command that rehearses what is left, without the name of its program."""
    namespace, name = place
    return ["plan", name, f"--namespace={namespace}"]


# What the page shows


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A change on a line of time that begins with its first step, and in words what is left."""

    timeline: Timeline
    is_computing: bool
    left: str
    problem: str
    differences: Sequence[str]
    command: str


def change_view(place: Place, change: Change, outlook: Outlook, now: datetime) -> ChangeView:
    """What has happened, and what is left according to an outlook."""
    began = min([now, *(past.begins for past in change.steps)])
    elapsed, at = (now - began).total_seconds(), (outlook.at - began).total_seconds()
    steps = _to_come(change, outlook)
    under_way = {past.pod for past in change.steps if past.ends is None}
    until = {step.pod: at + step.ends for step in steps if step.pod in under_way and step.ends is not None}
    ahead = [bar for bar in bars_of(steps) if bar.name not in under_way]
    # a step that has not begun in time delays those after it
    offset = max(at, elapsed - min((bar.begins for bar in ahead), default=0.0))
    bars = [_bar(past, began, now, until.get(past.pod, 0.0)) for past in change.steps]
    bars += [
        replace(bar, kind=f"{bar.kind} later", begins=bar.begins + offset, ends=bar.ends and bar.ends + offset)
        for bar in ahead
    ]
    return ChangeView(
        timeline=Timeline(bars, elapsed, elapsed),
        is_computing=outlook.is_computing,
        left=plan.verdict(outlook.forecast) if outlook.forecast and not outlook.is_computing else "",
        problem=outlook.problem,
        differences=outlook.differences,
        command=shlex.join(["kubectl", "tidb", *arguments(place)]),
    )


def _to_come(change: Change, outlook: Outlook) -> Sequence[Step]:
    """The steps of an outlook that have not ended, or not begun, since its rehearsal."""
    if outlook.forecast is None:
        return []
    done = {past.pod for past in change.steps if max(past.begins, past.ends or past.begins) > outlook.at}
    return [step for step in outlook.forecast.steps if step.pod not in done]


_DONE: Mapping[Act, str] = {"restarts": "restarted", "starts": "started", "leaves": "was deleted"}
_DOING: Mapping[Act, str] = {"restarts": "is restarting", "starts": "is starting", "leaves": "is leaving"}


def _bar(past: Past, began: datetime, now: datetime, until: float) -> Bar:
    """A bar for a step of the past; a pod that is not Ready yet lasts `until` a time that was foreseen."""
    begins = (past.begins - began).total_seconds()
    if past.ends is not None:
        ends = (past.ends - began).total_seconds()
        ready = "" if past.act == "leaves" else f", Ready after {span(ends - begins)}"
        return Bar(past.pod, f"{_DONE[past.act]}{ready}", past.act, begins, max(ends, begins))
    elapsed = (now - began).total_seconds()
    words = f"{_DOING[past.act]}, for {span(elapsed - begins)}"
    return Bar(past.pod, words, past.act, begins, max(until, elapsed))
