"""Admission webhooks that change writes, from the start or later.

`admission/mirror/tikv-upgrade` is `tikv-upgrade` of a cluster created while images were rewritten,
`admission/mirror/tikv-upgrade@later` of one created before. A webhook changes each write again: the operator must
neither fight it nor treat it as a change that restarts pods (better than v1.6).
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from sandbox.webhooks import WEBHOOKS
from simulate.engine.plan import Plan, World
from simulate.families.family import of_known
from simulate.families.workloads import WORKLOADS

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
"""Seconds in which a cluster is created."""
_LATER = "@later"


def _plans() -> Iterator[Plan]:
    return chain.from_iterable(map(_of, WEBHOOKS))


def _of(webhook: str) -> Iterator[Plan]:
    changes = World(at=0.0, verb="webhook", arguments={"name": webhook}, seconds=0.0)
    for workload in _WORKLOADS:
        plan = replace(WORKLOADS[workload], name=f"{FAMILY.name}/{webhook}/{workload}", reference=False)
        if plan.world == "steady":
            if plan.edits:
                # otherwise the spec is unchanged when the first write brings the webhook's template
                yield replace(plan, name=f"{plan.name}{_LATER}", given=(changes, *plan.given))
            plan = _from_the_start(plan)
        yield replace(plan, given=(changes, *plan.given))


def _from_the_start(plan: Plan) -> Plan:
    """The plan, starting before its cluster is created."""
    edits = tuple(edit.postponed(_MADE) for edit in plan.edits)
    given = tuple(each.postponed(_MADE) for each in plan.given)
    return replace(plan, world="empty", budget=plan.budget + _MADE, edits=edits, given=given)


FAMILY = of_known(
    "admission",
    _plans,
    f"no `WEBHOOK/WORKLOAD` or `WEBHOOK/WORKLOAD{_LATER}` with a webhook out of {', '.join(WEBHOOKS)} "
    f"and a workload out of {', '.join(_WORKLOADS)}",
)
