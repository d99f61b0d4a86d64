"""What events and timers alone bring about.

`no-resync/tikv-upgrade` is `tikv-upgrade` with informers that never resync, and `no-resync/loss/tikv-4.node.config@...`
is a loss. A resync is for what was missed. Whatever waits for one - for a time that is over, or for what
the data plane does while nobody looks - comes late, by minutes where `-resync-duration` is long. Left out is what only
a look now and then can find: a server of a cluster at rest that fails without its pod.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from simulate import crossed_mistakes, flips, loss_and_edit, schedules
from simulate.family import Family, by_name
from simulate.plan import InvalidPlan, Plan
from simulate.workloads import WORKLOADS

_OF_OTHERS: Mapping[str, Family] = by_name(
    crossed_mistakes.FAMILY, flips.FAMILY, loss_and_edit.FAMILY, schedules.FAMILY
)


def _plan(rest: str) -> Plan:
    """The plan called `no-resync/<rest>`. Raises InvalidPlan."""
    of, _, name = rest.partition("/")
    if of in _OF_OTHERS:
        return _without_resyncs(_OF_OTHERS[of].plan(name))
    if rest not in WORKLOADS:
        known = ", ".join(f"{each}/..." for each in _OF_OTHERS)
        raise InvalidPlan(f"{rest!r} is no workload, and none of {known}")
    return _without_resyncs(WORKLOADS[rest])


def _plans() -> Iterator[Plan]:
    """All of them."""
    yield from map(_without_resyncs, WORKLOADS.values())
    for family in _OF_OTHERS.values():
        yield from map(_without_resyncs, family.plans())


def _without_resyncs(plan: Plan) -> Plan:
    return replace(plan, name=f"{FAMILY.name}/{plan.name}", resyncs=False)


FAMILY = Family("no-resync", _plan, _plans)
