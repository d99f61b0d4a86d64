"""Two changes, the second in the middle of the first (reliability.md R24).

`pair/tikv-scale-out+pd-upgrade@3` begins to scale TiKV out and upgrades PD after the operator's third write.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations

from apis.components import component_type
from kube.objects import Json
from simulate.plan import Edit, InvalidPlan, Plan
from simulate.worlds import replicas_of, storage_volume

FAMILY = "pair"

_CLUSTER = "roomy"

_BUDGET = 420.0

_OPERATIONS: Mapping[str, Callable[[str], Json]] = {
    "scale-out": lambda component: {"replicas": replicas_of(_CLUSTER)[component] + 1},
    "scale-in": lambda component: {"replicas": replicas_of(_CLUSTER)[component] - 1},
    "upgrade": lambda _: {"version": "v8.5.3"},
    "config": lambda _: {"config": {"log": {"level": "warn"}}},
    "label": lambda _: {"labels": {"team": "a"}},
    "resize": lambda component: (
        {"requests": {"storage": "2Gi"}}
        if component_type(component).data_volume
        else {"storageVolumes": [storage_volume("2Gi")]}
    ),
}

CHANGES: Mapping[str, Json] = {
    f"{component}-{name}": {component: change(component)}
    for component in replicas_of(_CLUSTER)
    for name, change in _OPERATIONS.items()
}
"""Every operation on every component, as what is merged into the spec."""


def pair(rest: str) -> Plan:
    """The plan called `pair/<rest>`: of one change, or of two. Raises InvalidPlan."""
    first, _, then = rest.partition("+")
    second, _, writes = then.partition("@")
    if first not in CHANGES or (then and (second not in CHANGES or not writes.isdigit())):
        raise InvalidPlan(f"{rest!r} is no `CHANGE` or `CHANGE+CHANGE@WRITES` with changes out of {', '.join(CHANGES)}")
    edits = [Edit(at=1.0, spec=CHANGES[first])]
    if then:
        edits.append(_after(int(writes), CHANGES[second]))
    return Plan(name=f"{FAMILY}/{rest}", cluster=_CLUSTER, budget=_BUDGET, edits=tuple(edits), reference=False)


def pairs(writes: Callable[[Plan], int]) -> Iterator[Plan]:
    """Every pair, the second change with the first, after its first write, and half-way through its writes."""
    for first, second in combinations(CHANGES, 2):
        yield pair(f"{first}+{second}@0")
    for first, second in permutations(CHANGES, 2):
        yield pair(f"{first}+{second}@1")
        yield pair(f"{first}+{second}@{max(writes(pair(first)) // 2, 2)}")


def _after(writes: int, change: Json) -> Edit:
    return Edit(write=writes, spec=change) if writes else Edit(at=1.0, spec=change)
