"""A drill: something of a world is lost, alone or in the middle of a change, and what that does to the clusters.

Each moment of a loss is tried in a copy of this process, which continues from the world as it is at that moment.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from functools import partial

from kube.objects import Json
from kube.resources import NODES
from ports.forks import Forks
from rehearsal.change import Scene, change, clusters_of, put
from rehearsal.damage import Damage, damage, is_whole
from rehearsal.film import PATIENCE, REFUSED, Film, Watcher
from rehearsal.forecast import Act, Forecast, Step, forecast
from rehearsal.stage import CannotRehearse
from sandbox.faults import Heal

OPERATOR = "operator"

ANOTHER_REPLICA = 20.0
"""Seconds until another replica of the operator has the Lease of one that ended."""

_LONGEST = 4 * 3600.0
_LATE = 10.0
"""The seconds within which a step begins that began at a moment when the change was first rehearsed."""
_ZONE = "topology.kubernetes.io/zone"
_NOUNS: Mapping[Act, str] = {"restarts": "restart", "starts": "start", "leaves": "removal"}


class NoSuchThing(Exception):
    """Raised for a loss or a moment that does not exist; the message names those that do."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of a node, a zone, a pod (which then ends at each start) or the operator, for `seconds` if not 0."""

    kind: str
    name: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Moment:
    """When something is lost: seconds since the change, and the step that begins then, e.g. `restart of basic-pd-0`."""

    at: float = 0.0
    step: str = ""


@dataclass(frozen=True, slots=True)
class When:
    """The moments to try: during a `step`, or `at` seconds after the change, or at each step; by default at once."""

    step: str = ""
    at: float | None = None
    each: bool = False


@dataclass(frozen=True, slots=True)
class Drilled:
    """The damage to each cluster of a loss at one moment."""

    moment: Moment
    damages: Mapping[str, Damage]

    @property
    def severity(self) -> tuple[float, ...]:
        """The severity of the cluster that suffers most."""
        return max(each.severity for each in self.damages.values())


def drill(scene: Scene, after: Sequence[Json], loss: Loss, when: When) -> Sequence[Drilled]:
    """Try a loss while the objects `after` are applied; without any, in the cluster at rest.

    Raises NoSuchThing, and CannotRehearse on a system without fork.
    """
    if not hasattr(os, "fork"):
        raise CannotRehearse("a drill copies its process, which this system cannot; use Linux or macOS")
    loss = _resolve(scene, loss)
    moments = _moments(scene, after, when)
    films = scene.films(clusters_of(after))
    for film in films.values():
        film.see_servers()
    began, forks = scene.stage.clock.now(), Forks[Drilled]()
    put(scene, after)
    watcher = _Watcher(scene, films)
    for moment in moments:
        watcher.run(lambda: False, began + moment.at)
        # the step begins at this instant or the next: its pod is still there until then
        watcher.run(partial(_has_begun, moment.step, films), began + moment.at + _LATE)
        at = round(scene.stage.clock.now() - began, 3)  # as in frames
        forks.start(partial(_struck, scene, films, watcher, loss, with_fields(moment, at=at)))
    return forks.results()


def _has_begun(step: str, films: Mapping[str, Film]) -> bool:
    return not step or any(has_begun(step, forecast(film.frames).steps) for film in films.values())


def has_begun(step: str, steps: Iterable[Step]) -> bool:
    """True if a step, named as by `named`, is among `steps`.

    A restart in progress counts for each step of its pod: until a pod is gone, its removal looks like a restart.
    """
    return any(
        step == named(each) or (each.act == "restarts" and each.ends is None and step.endswith(f" of {each.pod}"))
        for each in steps
    )


def _moments(scene: Scene, after: Sequence[Json], when: When) -> Sequence[Moment]:
    """The moments, in order: the change is rehearsed once to find its steps. Raises NoSuchThing."""
    if not after:
        return [Moment()]
    first = Forks[Mapping[str, Forecast]]()
    first.start(lambda: change(scene, after))
    (forecasts,) = first.results()
    steps = sorted((step for found in forecasts.values() for step in found.steps), key=lambda each: each.begins)
    if when.step:
        found = next((step for step in steps if named(step) == when.step), None)
        if found is None:
            known = ", ".join(map(named, steps)) or "none, since no pod restarts, starts or leaves"
            raise NoSuchThing(f"--during {when.step!r}: the change has no such step; it has: {known}")
        return [_moment(found)]
    if when.at is not None:
        end = max((each.seconds for each in forecasts.values()), default=0.0)
        if when.at > end:
            raise NoSuchThing(f"--at {when.at:g}s: the change is over after {end:g}s; name a time up to then")
        return [Moment(when.at, _step_at(when.at, steps))]
    each_step = list(map(_moment, steps)) if when.each else []
    return list({moment.at: moment for moment in (Moment(), *each_step)}.values())


def _moment(step: Step) -> Moment:
    return Moment(step.begins, named(step))


def named(step: Step) -> str:
    """A step as users name it, e.g. `restart of basic-tikv-1`."""
    return f"{_NOUNS[step.act]} of {step.pod}"


def _step_at(at: float, steps: Sequence[Step]) -> str:
    return next((named(step) for step in steps if step.begins <= at and (step.ends is None or at < step.ends)), "")


# The loss


def _resolve(scene: Scene, loss: Loss) -> Loss:
    """The loss, of a pod with its namespace. Raises NoSuchThing unless there is what is to be lost."""
    known = {"node": _nodes(scene), "zone": _zones(scene), "pod": _pods(scene)}.get(loss.kind, {loss.name: ""})
    if loss.name not in known:
        there = ", ".join(f"{loss.kind}/{each}" for each in sorted(known)) or f"no {loss.kind}s"
        raise NoSuchThing(f"--fail {loss}: there is no such {loss.kind}; there are: {there}")
    return with_fields(loss, name=known[loss.name]) if loss.kind == "pod" else loss


def _nodes(scene: Scene) -> Mapping[str, str]:
    """The zones of the nodes, by name."""
    nodes = (each["metadata"] for each in scene.stage.world.mirror.list(NODES))
    return {node["name"]: (node.get("labels") or {}).get(_ZONE, "") for node in nodes}


def _zones(scene: Scene) -> Mapping[str, str]:
    return {zone: "" for zone in _nodes(scene).values() if zone}


def _pods(scene: Scene) -> Mapping[str, str]:
    """The pods of the clusters as `namespace/name`, by name."""
    films = scene.films()
    found = ((key.partition(" ")[2].partition("/")[0], film) for key, film in films.items())
    return {pod: f"{namespace}/{pod}" for namespace, film in found for pod in film.frames[0].pods}


def strike(scene: Scene, loss: Loss) -> Heal:
    """Take away what is to be lost, as the simulator does; the answer gives it back.

    The loss of a pod that has left by then does nothing.
    """
    faults = scene.stage.world.faults
    match loss.kind:
        case "node":
            return faults.node_gone(loss.name)
        case "zone":
            return faults.machines_gone(loss.name)
        case "pod":
            return faults.pod_crash_loop(loss.name)
        case _:
            scene.stage.leave()
            return lambda: scene.stage.enter(scene.settings)


def _struck(scene: Scene, films: Mapping[str, Film], watcher: "_Watcher", loss: Loss, moment: Moment) -> Drilled:
    """The rest of a change after a loss."""
    struck = scene.stage.clock.now()
    heal = strike(scene, loss)
    seconds = loss.seconds or (ANOTHER_REPLICA if loss.kind == OPERATOR else 0.0)
    if seconds:
        watcher.run(lambda: False, struck + seconds)
        heal()
    watcher.run(watcher.is_over, struck + _LONGEST)
    return Drilled(moment, {key: damage(film.frames, moment.at) for key, film in films.items()})


class _Watcher(Watcher):
    """Looks whenever a server or a region changes, too, and waits for PD to give a silent store up."""

    def __init__(self, scene: Scene, films: Mapping[str, Film]) -> None:
        super().__init__(scene.stage.clock, list(films.values()))
        self._stage = scene.stage
        self._all = list(films.values())
        self._looked_at: list[object] = []
        self._silent_at = scene.stage.clock.now()

    def run(self, is_over: Callable[[], bool], until: float) -> None:
        """Let time pass until `is_over`, or until a time of the clock."""
        within = max(until - self._stage.clock.now(), 0.0)
        self._stage.run(is_over, within, self.look, self._is_new)

    def is_over(self) -> bool:
        """True if all is whole, or nothing more will happen."""
        frames = [(film.frames[-1], film.frames[0]) for film in self._all]
        if all((each.is_over or each.is_held or each.is_refused) and is_whole(each, first) for each, first in frames):
            return self.quiet >= REFUSED
        now = self._stage.clock.now()
        if any(self._is_silent(film) for film in self._all):
            self._silent_at = now
        return min(self.quiet, now - self._silent_at) >= PATIENCE

    def _is_silent(self, film: Film) -> bool:
        """True if PD still waits for a store before it counts as lost."""
        if film.pd is None:
            return False
        stores, now = film.pd.stores, self._stage.clock.now()
        return any(stores.true_state(store, now) == "Disconnected" for store in stores.all())

    def _is_new(self) -> bool:
        seen: list[object] = [film.beyond_kubernetes() for film in self._all]
        if seen == self._looked_at:
            return False
        self._looked_at = seen
        return True
