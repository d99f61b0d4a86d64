"""Admission webhooks that change what is written, there from the start or later.

`admission/mirror/tikv-upgrade` is `tikv-upgrade` of a cluster that was made while images were rewritten,
`admission/mirror/tikv-upgrade@later` of one before which that began. What a webhook makes of a write comes back with
each: the operator may not fight it, nor take it for a change that restarts pods (better than v1.6).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from sandbox.webhooks import WEBHOOKS
from simulate.plan import InvalidPlan, Plan, World
from simulate.workloads import WORKLOADS

FAMILY = "admission"

_WORKLOADS: Sequence[str] = (
    "bring-up",
    "tikv-out",
    "tikv-in",
    "tidb-in",
    "pd-upgrade",
    "tikv-upgrade",
    "tikv-config",
    "tidb-config",
    "tikv-failover",
    "suspend-resume",
    "volume-growth",
    "tikv-replace-volume",
    "tiflash-upgrade",
    "tiproxy-upgrade",
    "ticdc-upgrade",
    "pump-upgrade",
    "pdms-upgrade-out-in",
    "dm-upgrade-in",
    "monitor",
    "dashboard",
    "ng-monitoring",
    "initializer",
    "backup-restore",
)
_MADE = 90.0
"""Seconds in which a cluster is made."""
_LATER = "@later"


def admission(rest: str) -> Plan:
    """The plan called `admission/<rest>`. Raises InvalidPlan."""
    if rest not in _plans():
        known = f"one of {', '.join(WEBHOOKS)} and one of {', '.join(_WORKLOADS)}, with {_LATER} or without"
        raise InvalidPlan(f"{rest!r} is not {known}, with a slash between")
    return _plans()[rest]


def admissions() -> Iterator[Plan]:
    """All of them."""
    return iter(_plans().values())


@cache
def _plans() -> Mapping[str, Plan]:
    """All plans by the part of their names behind the family."""
    return {plan.name.partition("/")[2]: plan for webhook in WEBHOOKS for plan in _of(webhook)}


def _of(webhook: str) -> Iterator[Plan]:
    changes = World(at=0.0, verb="webhook", arguments={"name": webhook}, seconds=0.0)
    for workload in _WORKLOADS:
        plan = replace(WORKLOADS[workload], name=f"{FAMILY}/{webhook}/{workload}", reference=False)
        if plan.world == "steady":
            if plan.edits:
                # else nobody has changed the spec when the first write brings the webhook's template
                yield replace(plan, name=f"{plan.name}{_LATER}", given=(changes, *plan.given))
            plan = _from_the_start(plan)
        yield replace(plan, given=(changes, *plan.given))


def _from_the_start(plan: Plan) -> Plan:
    """The plan with its cluster yet to be made."""
    edits = tuple(replace(each, at=(each.at or 0.0) + _MADE) for each in plan.edits)
    given = tuple(replace(each, at=(each.at or 0.0) + _MADE) for each in plan.given)
    return replace(plan, world="empty", budget=plan.budget + _MADE, edits=edits, given=given)
