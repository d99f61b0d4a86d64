"""Delete slots under faults, and switches of the feature AdvancedStatefulSet in the middle of changes.

`slots/17`: users ask for other replicas and slots, a cluster fails over, operators crash. `switch/17`: an administrator
switches the feature on, and often off again, while users change the cluster; operators crash at writes of the moves.
"""

from collections.abc import Iterator

from apis.ordinals import slots_annotation
from ports.randomness import Randomness
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Plan
from simulate.engine.worlds import SLOTTED, SWITCHED, replicas_of
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.mistakes import NO_IMAGE
from simulate.families.random_edits import Users
from simulate.families.seeds import budget, fault, fault_of_operator, in_order, time
from simulate.families.users_data import of_all_components

_HIGHEST = 6
"""The highest slot."""
_MOVES = ("* statefulsets.apps*", "PATCH controllerrevisions.apps *")
"""The writes of a move between both kinds of StatefulSets."""


def _slots(name: str, draw: Randomness) -> Plan:
    users = Users(draw, SLOTTED)
    edits = [_wish(draw, time(draw)) for _ in range(draw.integer(1, 4))]
    if draw.integer(1, 3) == 1:
        edits += users.edits(time(draw))
    faults = [pick(draw, (fault, fault_of_operator))(users) for _ in range(draw.integer(0, 2))]
    return _plan(name, SLOTTED, edits, faults)


def _wish(draw: Randomness, at: float) -> Edit:
    """Other replicas and slots of a component, in one edit."""
    component, least = pick(draw, tuple(replicas_of(SLOTTED).items()))
    slots = sorted({draw.integer(0, _HIGHEST) for _ in range(draw.integer(0, 2))})
    annotations = {slots_annotation(component): str(slots) if slots else None}
    return Edit(at=at, spec={component: {"replicas": draw.integer(least, least + 2)}}, annotations=annotations)


def _switches(name: str, draw: Randomness) -> Plan:
    users = Users(draw, SWITCHED)
    edits = [edit for _ in range(draw.integer(0, 2)) for edit in users.edits(time(draw))]
    return _plan(name, SWITCHED, edits, list(_turns(draw)))


def _turns(draw: Randomness) -> Iterator[plans.Fault]:
    at = between(draw, 1.0, 40.0)
    for number in range(draw.integer(1, 3)):
        yield plans.Feature(at=at, on=number % 2 == 0)
        at += between(draw, 2.0, 60.0)
    for _ in range(draw.integer(0, 3)):
        of, write = pick(draw, _MOVES), draw.integer(1, 9)
        yield plans.Crash(write=write, of=of, when=pick(draw, ("before", "after")))


def _plan(name: str, cluster: str, edits: list[Edit], faults: list[plans.Fault]) -> Plan:
    return Plan(
        name=name,
        cluster=cluster,
        budget=budget(edits),
        edits=in_order(edits),
        given=(NO_IMAGE, *of_all_components(cluster)),
        faults=tuple(faults),
        reference=False,
    )


FAMILY = of_seeds("slots", 200, _slots)
SWITCHES = of_seeds("switch", 200, _switches)
