"""What events and timers alone bring about.

`no-resync/tikv-upgrade` is `tikv-upgrade` with informers that never resync, and `no-resync/loss/tikv-4.node.config@...`
is a loss. A resync is for what was missed. Whatever waits for one - for a time that is over, or for what
the data plane does while nobody looks - comes late, by minutes where `-resync-duration` is long. Left out is what only
a look now and then can find: a server of a cluster at rest that fails without its pod.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from simulate import crossed_mistakes, flips, loss_and_edit, schedules
from simulate.family import Family
from simulate.plan import Plan
from simulate.plans_of_others import PlansOfOthers

_OTHERS = PlansOfOthers(crossed_mistakes.FAMILY, flips.FAMILY, loss_and_edit.FAMILY, schedules.FAMILY)


def _plan(rest: str) -> Plan:
    """The plan called `no-resync/<rest>`. Raises InvalidPlan."""
    return _without_resyncs(_OTHERS.named(rest))


def _plans() -> Iterator[Plan]:
    """All of them."""
    return map(_without_resyncs, _OTHERS.all())


def _without_resyncs(plan: Plan) -> Plan:
    return replace(plan, name=f"{FAMILY.name}/{plan.name}", resyncs=False)


FAMILY = Family("no-resync", _plan, _plans)
