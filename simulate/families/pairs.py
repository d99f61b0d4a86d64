"""Two changes, the second in the middle of the first (reliability.md R24).

`pair/tikv-scale-out+pd-upgrade@3` begins to scale TiKV out and upgrades PD after the operator's third write. PD, TiKV
and TiDB are paired with each other; every other component with itself and with its dependencies and dependants; DM's
with each other. A DMCluster is created by the plan itself, so that seconds count there, not writes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations

from msgspec.structs import replace

from apis.components import component_type
from kube.objects import Json
from simulate.engine.components import profile
from simulate.engine.plan import Edit, InvalidPlan, Plan
from simulate.engine.trees import merged
from simulate.engine.worlds import ROOMY, replicas_of, storage_volume
from simulate.families.family import Family
from simulate.families.homes import Home, all_components, home_of
from simulate.families.random_edits import larger
from simulate.families.users_data import of_all_components

_THREE = tuple(replicas_of(ROOMY))

_BUDGET = 420.0

_FEW = 3
"""The operator's writes after which it is in the middle of most changes."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a component's section."""

    component: str
    operation: str
    tree: Json

    @property
    def name(self) -> str:
        """The name in plan names."""
        return f"{self.component}-{self.operation}"

    @property
    def is_of_three(self) -> bool:
        """True for a component among PD, TiKV and TiDB."""
        return self.component in _THREE


def _changes(component: str) -> Iterator[Change]:
    """All operations on a component."""
    home = Home(component, _cluster_with(component))
    replicas = home.section["replicas"]
    trees: dict[str, Json] = {
        "scale-out": {"replicas": replicas + 1},
        "scale-in": {"replicas": fewer} if (fewer := _fewer(component, replicas)) else {},
        "upgrade": {"version": profile(component).versions[1]},
        "config": {"config": profile(component).config("warn")},
        "label": {"labels": {"team": "a"}},
        "resize": _larger(home),
    }
    return (Change(component, operation, tree) for operation, tree in trees.items() if tree)


def _fewer(component: str, replicas: int) -> int:
    """One less; of two masters none is restarted, because the other would not be a quorum."""
    return replicas - 2 if (component, replicas) == ("dm-master", 3) else replicas - 1


def _larger(home: Home) -> Json:
    """Larger volumes of a component; nothing if it has none."""
    return {"storageVolumes": [storage_volume("2Gi")]} if home.component == "tidb" else larger(home.component)


def _cluster_with(component: str) -> str:
    if home_of(component).is_of_dm:
        return home_of(component).cluster
    (part,) = component_type(component).slot.tree({})
    return ROOMY if component in _THREE else f"{ROOMY}+{part}"


CHANGES: Mapping[str, Change] = {
    change.name: change for component in all_components() for change in _changes(component)
}
"""Every operation on every component."""


def _plan(rest: str) -> Plan:
    """The plan `pair/<rest>` of one change or two. Raises InvalidPlan."""
    first, _, then = rest.partition("+")
    second, _, writes = then.partition("@")
    if first not in CHANGES or (then and (second not in CHANGES or not writes.isdecimal())):
        raise InvalidPlan(f"{rest!r} is no `CHANGE` or `CHANGE+CHANGE@WRITES` with changes out of {', '.join(CHANGES)}")
    changes = [CHANGES[each] for each in (first, second) if each]
    cluster = next((_cluster_with(each.component) for each in changes if not each.is_of_three), ROOMY)
    if not all(each.is_of_three or _cluster_with(each.component) == cluster for each in changes):
        raise InvalidPlan(f"{rest!r}: no cluster of this family has both {changes[0].component} and {second}")
    home = Home(changes[0].component, cluster)
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=cluster,
        budget=home.begins_at + _BUDGET,
        edits=(*home.made, *_edits(cluster, changes, int(writes or 0))),
        given=of_all_components(cluster),
        reference=False,
    )


def _edits(cluster: str, changes: list[Change], writes: int) -> Iterator[Edit]:
    """The edits; the second keeps the first one's changes of the same component."""
    sections: dict[str, Json] = {}
    for number, change in enumerate(changes):
        home = Home(change.component, cluster)
        before = sections.get(change.component, home.section)
        after = sections[change.component] = merged(before, change.tree)
        seconds = number * writes if home.is_of_dm else 0
        edit = home.replace(home.begins_at + 1.0 + seconds, before, after)
        yield replace(edit, at=None, write=writes) if number and writes and not seconds else edit


def pairs(writes: Callable[[Plan], int] = lambda _: 2 * _FEW) -> Iterator[Plan]:
    """Every pair, the second change with the first, after its first write, and half-way through its writes.

    Pairs beyond PD, TiKV and TiDB: with the first, and after a few writes. `writes` returns the number of a plan's
    writes, which takes a run of it; without it, half is assumed to be a few.
    """
    of_three = [name for name, change in CHANGES.items() if change.is_of_three]
    for first, second in combinations(of_three, 2):
        yield _plan(f"{first}+{second}@0")
    for first, second in permutations(of_three, 2):
        yield _plan(f"{first}+{second}@1")
        yield _plan(f"{first}+{second}@{max(writes(_plan(first)) // 2, 2)}")
    for first, second in combinations(CHANGES, 2):
        if _belong_together(CHANGES[first], CHANGES[second]):
            yield _plan(f"{first}+{second}@0")
            yield _plan(f"{first}+{second}@{_FEW}")
            yield _plan(f"{second}+{first}@{_FEW}")


def _belong_together(one: Change, other: Change) -> bool:
    """True if one is not among the three, and the other is the same component or related to it."""
    if one.is_of_three and other.is_of_three:
        return False
    if not one.is_of_three and not other.is_of_three:
        return one.component == other.component or all(home_of(each.component).is_of_dm for each in (one, other))
    rows = {each.component: component_type(each.component) for each in (one, other)}
    waits_for = {name: {*row.starts_after, *row.upgrades_after} for name, row in rows.items()}
    return other.component in waits_for[one.component] or one.component in waits_for[other.component]


FAMILY = Family("pair", _plan, pairs)
