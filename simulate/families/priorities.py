"""Rolls in an order that users choose by annotations of pods (lifecycle.md 7.1.1).

`priority/17` is the plan of a seed: a roll of another family or workload in which one or two pods get a priority,
before it begins or in the middle. In half of the plans the operator's process ends at a write of the roll.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kube.resources import PODS
from member import labels
from ports.randomness import Randomness
from simulate.engine.plan import Crash, Edit, Plan
from simulate.engine.worlds import BESIDE_DM
from simulate.families import delete_slots, dm_seeds, seeds, upgrade_order
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.random_edits import DMUsers, Users
from simulate.families.workloads import WORKLOADS

_ROLLS = (
    *("pd-upgrade", "tikv-upgrade", "tidb-upgrade", "upgrade", "tikv-config", "tikv-upgrade-taken-back"),
    *("tikv-volume-added", "tikv-other-class", "tiflash-upgrade", "tiproxy-upgrade", "upgrade-complete", "tls-upgrade"),
)
_ORDERS = tuple(plan.name.partition("/")[2] for plan in upgrade_order.FAMILY.plans())
_SEEDS = 400
"""The number of plans of the other families of which one is drawn."""
_PRIORITIES = ("10", "10", "5", "1", "-1", "first")
_BEFORE, _LATE = -0.5, 15.0
"""Seconds after the first edit: a pod gets its priority before it, or within this time."""
_WRITES = ("* statefulsets.apps*", "DELETE pods *", "PATCH pods *", "")
_MORE = 120.0
"""Additional seconds of a plan for the operator's return."""

_Draw = Callable[[Randomness], Plan]


def _of_seed(make: Callable[[str], Plan]) -> _Draw:
    return lambda draw: make(str(draw.integer(0, _SEEDS - 1)))


_SOURCES: tuple[_Draw, ...] = (
    *(lambda draw: WORKLOADS[pick(draw, _ROLLS)],) * 4,
    lambda draw: upgrade_order.FAMILY.plan(pick(draw, _ORDERS)),
    _of_seed(delete_slots.FAMILY.plan),
    _of_seed(dm_seeds.FAMILY.plan),
    _of_seed(lambda seed: seeds.random_plan(int(seed))),
)


def _plan(name: str, draw: Randomness) -> Plan:
    base = pick(draw, _SOURCES)(draw)
    crashes = draw.integer(1, 2) == 1
    return replace(
        base,
        name=name,
        edits=(*base.edits, *_annotated(draw, base)),
        faults=(*base.faults, *([_crash(draw)] if crashes else ())),
        budget=base.budget + _MORE,
        reference=False,
    )


def _annotated(draw: Randomness, base: Plan) -> Iterator[Edit]:
    begins = min((edit.at for edit in base.edits if edit.spec and edit.at is not None), default=1.0)
    users = DMUsers(draw, base.cluster) if _is_of_dm(base) else Users(draw, base.cluster)
    changed = {key for edit in base.edits for key in edit.spec}
    several = [component for component, replicas in users.replicas.items() if replicas > 1]
    component = pick(draw, [each for each in several if each in changed] or several)
    pods = users.replicas[component]
    for _ in range(draw.integer(1, 2)):
        # the highest one is first anyway
        pod = f"{users.name}-{component}-{draw.integer(0, pods - 2)}"
        at = max(0.1, round(begins + pick(draw, (_BEFORE, between(draw, 0.0, _LATE))), 2))
        yield Edit(at=at, target=f"{PODS}/{pod}", annotations={labels.RESTART_PRIORITY: pick(draw, _PRIORITIES)})


def _is_of_dm(base: Plan) -> bool:
    return base.cluster == BESIDE_DM or any("dmclusters" in edit.target for edit in base.edits)


def _crash(draw: Randomness) -> Crash:
    return Crash(write=draw.integer(1, 9), of=pick(draw, _WRITES), when=pick(draw, ("before", "after")))


FAMILY = of_seeds("priority", 300, _plan)
