"""Upgrades of every mix of components, with and without TLS (lifecycle.md 7.2).

`order/pump+ticdc` upgrades a cluster with these beside PD, TiKV and TiDB, `order/pump+ticdc+tls` one with TLS. I16
checks the order, the other invariants each component's duties.
"""

from collections.abc import Iterator

from kube.objects import Json
from simulate.engine.plan import Edit, InvalidPlan, Plan
from simulate.engine.worlds import MIXED, microservices
from simulate.families.family import Family
from simulate.families.users_data import of_all_components

_BUDGET = 180.0
_NOTHING = "nothing"


def _plan(rest: str) -> Plan:
    """The plan called `order/<rest>`. Raises InvalidPlan."""
    cluster = "mix" if rest == _NOTHING else f"mix+{rest}"
    if cluster not in MIXED:
        raise InvalidPlan(f"{rest!r} is no mix, such as `{max(MIXED, key=len).removeprefix('mix+')}` or `{_NOTHING}`")
    spec = MIXED[cluster]()["spec"]
    change: Json = {"version": "v8.5.3"}
    if "tiproxy" in spec:
        # it has its own versions
        change |= {"tiproxy": {"version": "v1.3.1"}}
    if "pdms" in spec:
        change |= {"pdms": microservices(tso=2, scheduling=1, version="v8.5.3")}
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=cluster,
        budget=_BUDGET,
        edits=(Edit(at=10.0, spec=change),),
        given=of_all_components(cluster),
    )


def _plans() -> Iterator[Plan]:
    """All of them."""
    return (_plan(each.removeprefix("mix").removeprefix("+") or _NOTHING) for each in MIXED)


FAMILY = Family("order", _plan, _plans)
