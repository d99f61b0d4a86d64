"""What events and timers alone bring about.

`no-resync/tikv-upgrade` is `tikv-upgrade` with informers that never resync, and `no-resync/loss/tikv-4.node.config@...`
is a loss. A resync is for what was missed. Whatever waits for one - for a time that is over, or for what
the data plane does while nobody looks - comes late, by minutes where `-resync-duration` is long. Left out is what only
a look now and then can find: a server of a cluster at rest that fails without its pod.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from simulate import crossed_mistakes, flips, loss_and_edit, schedules
from simulate.plan import InvalidPlan, Plan
from simulate.workloads import WORKLOADS

FAMILY = "no-resync"

_OF_OTHERS: Mapping[str, tuple[Callable[[str], Plan], Callable[[], Iterator[Plan]]]] = {
    crossed_mistakes.FAMILY: (crossed_mistakes.crossed, crossed_mistakes.crosses),
    flips.FAMILY: (flips.flip, flips.flips),
    loss_and_edit.FAMILY: (loss_and_edit.loss, loss_and_edit.losses),
    schedules.FAMILY: (schedules.schedule, schedules.schedules),
}


def no_resync(rest: str) -> Plan:
    """The plan called `no-resync/<rest>`. Raises InvalidPlan."""
    of, _, name = rest.partition("/")
    if of in _OF_OTHERS:
        named, _ = _OF_OTHERS[of]
        return _without_resyncs(named(name))
    if rest not in WORKLOADS:
        known = ", ".join(f"{each}/..." for each in _OF_OTHERS)
        raise InvalidPlan(f"{rest!r} is no workload, and none of {known}")
    return _without_resyncs(WORKLOADS[rest])


def no_resyncs() -> Iterator[Plan]:
    """All of them."""
    yield from map(_without_resyncs, WORKLOADS.values())
    for _, plans in _OF_OTHERS.values():
        yield from map(_without_resyncs, plans())


def _without_resyncs(plan: Plan) -> Plan:
    return replace(plan, name=f"{FAMILY}/{plan.name}", resyncs=False)
