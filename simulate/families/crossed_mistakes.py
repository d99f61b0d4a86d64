"""A mistake in a spec, from the start or later, combined with another event before it has healed (R22, R23).

`crossed/17` is the plan of a seed. It ends as without both, or with a condition that names a step for the user.
"""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec.structs import replace

from apis.components import component_type
from ports.randomness import Randomness
from simulate.engine.components import managed_components
from simulate.engine.plan import (
    Crash,
    Deleted,
    Fault,
    Hidden,
    Lost,
    Plan,
    Refused,
    Second,
    Stale,
    TimeTravel,
    Trouble,
    World,
)
from simulate.engine.worlds import KEY, NAME, NAMESPACE
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.homes import Home, home_of
from simulate.families.loss_and_edit import CONVERGED
from simulate.families.mistakes import MISTAKES, NO_CLASS_OF_DATA, NO_IMAGE, Mistake
from simulate.families.users_data import of_all_components

_UNNOTICED = (8.0, 15.0, 30.0, 60.0)
"""Seconds until the user notices the mistake."""
_AFTERWARDS = 20.0
"""Seconds after the correction within which another event may begin."""
_HEALED = 700.0
"""Seconds within which everything must heal."""
_REPLACED = 2700.0
"""The same if data was lost: PD misses a store for half an hour before it is Down."""
_WRITES = 12
"""The range of the operator's writes of which one is hit; three times as many while the cluster is created."""
_PODS = 3

_Moment: TypeAlias = tuple[float, float]
"""The seconds between which an event begins."""


def _plan(name: str, draw: Randomness) -> Plan:
    home = home_of(pick(draw, managed_components()))
    mistakes = _mistakes(home)
    kind = pick(draw, [*mistakes])
    is_made = kind == "data-class" or draw.integer(1, 3) == 1
    at = 0.0 if is_made else pick(draw, (1.0, 5.0))
    right_at = at + pick(draw, _UNNOTICED)
    roll = (home.merge(1.0, {"annotations": {"roll": "1"}}),) if not is_made and draw.integer(0, 1) else ()
    writes = _WRITES * (3 if is_made else 1)
    faults = tuple(fault(draw, home, (at, right_at + _AFTERWARDS), writes) for _ in range(draw.integer(1, 2)))
    return Plan(
        name=name,
        world="empty" if is_made else "steady",
        cluster=home.cluster,
        budget=right_at + (_REPLACED if takes_data(faults) else _HEALED),
        edits=(*roll, *mistakes[kind].edits(home, at, right_at)),
        given=(NO_IMAGE, *(() if is_made else of_all_components(home.cluster))),
        faults=faults,
        reference=False,
        ends=ends(faults),
    )


def _mistakes(home: Home) -> Mapping[str, Mistake]:
    return {**MISTAKES, **({"data-class": NO_CLASS_OF_DATA} if component_type(home.component).data_volume else {})}


def fault(draw: Randomness, home: Home, when: _Moment, writes: int) -> Fault:
    """A random fault of the operator, its requests, other clients or machines."""
    return pick(draw, (_of_the_operator, _of_requests, _of_others, _of_pods))(draw, home, when, writes)


def _of_the_operator(draw: Randomness, _: Home, when: _Moment, writes: int) -> Fault:
    at, write = between(draw, *when), draw.integer(1, writes)
    kinds: tuple[Fault, ...] = (
        Crash(write=write, when=pick(draw, ("before", "after")), seconds=pick(draw, (1.0, 20.0))),
        Stale(at=at, seconds=30.0),
        Hidden(at=at, seconds=30.0),
        TimeTravel(at=at, back=draw.integer(1, 3)),
        Second(at=at),
    )
    return pick(draw, kinds)


def _of_requests(draw: Randomness, _: Home, when: _Moment, writes: int) -> Fault:
    at, write = between(draw, *when), draw.integer(1, writes)
    kinds: tuple[Fault, ...] = (
        Lost(write=write, when=pick(draw, ("before", "after"))),
        Refused(write=write, code=pick(draw, (403, 409, 429, 500))),
        Trouble(at=at, port=pick(draw, ("kubernetes", "data plane"))),
        World(at=at, verb="pd_no_leader", arguments={"cluster": KEY}, seconds=30.0, if_there=True),
        World(at=at, verb="api_down", seconds=20.0),
    )
    return pick(draw, kinds)


def _of_others(draw: Randomness, home: Home, when: _Moment, _: int) -> Fault:
    name = f"{NAME}-{home.component}"
    pod = f"{name}-{draw.integer(0, _PODS - 1)}"
    volume = component_type(home.component).data_volume or "data0"
    targets = [f"pods/{pod}", f"statefulsets.apps/{name}", f"persistentvolumeclaims/{volume}-{pod}"]
    deleted = Deleted(at=between(draw, *when), target=pick(draw, targets))
    orphans = deleted.target.startswith("statefulsets") and draw.integer(0, 1)
    return replace(deleted, propagation="Orphan") if orphans else deleted


def _of_pods(draw: Randomness, home: Home, when: _Moment, _: int) -> Fault:
    for_good, for_a_while = ("pod_crash", "pod_evicted"), {"pod_unready": 30.0, "pod_hang": 30.0, "pod_pending": 40.0}
    verb = pick(draw, (*for_good, *for_a_while))
    pod = f"{NAMESPACE}/{NAME}-{home.component}-{draw.integer(0, _PODS - 1)}"
    return World(at=between(draw, *when), verb=verb, arguments={"pod": pod}, seconds=for_a_while.get(verb, 0.0))


def ends(faults: tuple[Fault, ...]) -> str | tuple[str, ...]:
    return (*CONVERGED, "VolumeBeingDeleted") if takes_data(faults) else "Done"


def takes_data(faults: tuple[Fault, ...]) -> bool:
    """True if another client deletes data."""
    return any(isinstance(each, Deleted) and each.target.startswith("persistentvolumeclaims") for each in faults)


FAMILY = of_seeds("crossed", 600, _plan)
