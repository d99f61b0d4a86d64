"""Random faults of the operator itself in other families' plans (FP1-FP4, FP8, FP9, FP12).

`operator/mortal-3-4+17` is the plan of a seed: crashes, lagging or incomplete views, a second operator, failing
requests. Alone they change nothing; `together` combines them with losses and edits.
"""

from collections.abc import Iterator
from itertools import product

from ports.randomness import SeededRandomness
from simulate.engine.plan import InvalidPlan, Plan
from simulate.engine.worlds import MORTAL, ROOMY
from simulate.families.family import Family
from simulate.families.random_edits import Users
from simulate.families.seeds import budget, fault_of_operator

_CLUSTERS = (*MORTAL, ROOMY, "small", "brittle", "complete")
_SEEDS = 40
_FEWEST, _MOST = 2, 4
"""The minimum and maximum number of faults in a plan."""


def _plan(rest: str) -> Plan:
    """The plan called `operator/<rest>`. Raises InvalidPlan."""
    cluster, _, seed = rest.rpartition("+")
    if cluster not in _CLUSTERS or not seed.isdecimal():
        raise InvalidPlan(f"{rest!r} is no `CLUSTER+SEED` of {', '.join(_CLUSTERS)}")
    name = f"{FAMILY.name}/{rest}"
    users = Users(SeededRandomness(name), cluster)
    return Plan(
        name=name,
        cluster=cluster,
        seed=int(seed),
        budget=budget(()),
        faults=tuple(fault_of_operator(users) for _ in range(users.draw.integer(_FEWEST, _MOST))),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    return (_plan(f"{cluster}+{seed}") for cluster, seed in product(_CLUSTERS, range(_SEEDS)))


FAMILY = Family("operator", _plan, _plans)
