"""The effect of events and timers alone.

`no-resync/tikv-upgrade` is `tikv-upgrade` with informers that never resync, and `no-resync/loss/tikv-4.node.config@...`
is a loss. A resync is for missed events. Work that waits for one, e.g. after a time-out or an unobserved change of the
data plane, is late by minutes if `-resync-duration` is long. Plans that depend on periodic observation are left out: a
server of a cluster at rest that fails without its pod.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from simulate.engine.plan import Plan
from simulate.families import crossed_mistakes, flips, loss_and_edit, schedules
from simulate.families.family import Family
from simulate.families.plans_of_others import PlansOfOthers

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
