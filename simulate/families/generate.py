"""Plans generated from a recorded run, as by Sieve: the same workload with one fault at one write.

A generated plan is called `workload/kind-number`, or `family/...`; the name determines the plan.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from simulate.engine import plan as plans
from simulate.engine.plan import InvalidPlan, Plan
from simulate.families import (
    additions,
    backup_faults,
    clocks,
    consents,
    crossed_mistakes,
    delete_slots,
    dm_seeds,
    fields,
    flips,
    foreign_hands,
    graceful_stops,
    insisting,
    invalid_specs,
    joined_pairs,
    lagging_caches,
    lies,
    log_flushes,
    loss_and_edit,
    losses_midway,
    losses_undone,
    mistakes,
    operator_troubles,
    other_seeds,
    outages,
    pairs,
    pd_hands,
    priorities,
    refused_edits,
    same_meaning,
    schedules,
    sidecars,
    silences,
    sub_objects,
    together,
    upgrade_order,
    webhooks,
    without_resyncs,
)
from simulate.families.family import Family, by_name
from simulate.families.workloads import WORKLOADS

_STALE = 20.0
_DENIED = 60.0
_PODS_AND_VOLUMES = ("pods", "persistentvolumeclaims", "persistentvolumes")
"""Without StatefulSets and Services, because a reconcile ends at their first conflict."""
_AFTERWARDS = 120.0
"""Additional seconds for a plan with a fault."""

KINDS: Mapping[str, Callable[[int], plans.Fault]] = {
    "crash-before": lambda k: plans.Crash(write=k, when="before"),
    "crash-after": lambda k: plans.Crash(write=k, when="after"),
    "lost": lambda k: plans.Lost(write=k, when="after"),
    "unsent": lambda k: plans.Lost(write=k, when="before"),
    "refused": lambda k: plans.Refused(write=k, code=500),
    "conflict": lambda k: plans.Refused(write=k, code=409),
    "denied": lambda k: plans.Denied(write=k, seconds=_DENIED),
    "stale": lambda k: plans.Stale(write=k, when="before", seconds=_STALE),
    "hidden": lambda k: plans.Hidden(write=k, when="after", seconds=_STALE),
    "emptied": lambda k: plans.Emptied(write=k, when="after", seconds=_STALE, caches=_PODS_AND_VOLUMES),
    "time-travel": lambda k: plans.TimeTravel(at=0.5 + k, back=k, seconds=_STALE),
    "second": lambda k: plans.Second(write=k, when="after", seconds=60.0),
    "restart": lambda k: plans.Crash(at=float(k), seconds=5.0),
}
"""The events at the k-th write; for `time-travel` after k seconds and k writes back, for `restart` after k s."""


FAMILIES: Mapping[str, Family] = by_name(
    additions.FAMILY,
    backup_faults.FAMILY,
    clocks.FAMILY,
    consents.FAMILY,
    crossed_mistakes.FAMILY,
    delete_slots.FAMILY,
    delete_slots.SWITCHES,
    dm_seeds.FAMILY,
    fields.FAMILY,
    flips.FAMILY,
    loss_and_edit.FAMILY,
    losses_midway.FAMILY,
    losses_undone.FAMILY,
    foreign_hands.FAMILY,
    foreign_hands.OTHERS,
    foreign_hands.OF_DM,
    graceful_stops.FAMILY,
    insisting.FAMILY,
    invalid_specs.FAMILY,
    joined_pairs.FAMILY,
    lagging_caches.FAMILY,
    lies.FAMILY,
    log_flushes.FAMILY,
    mistakes.FAMILY,
    operator_troubles.FAMILY,
    other_seeds.FAMILY,
    outages.FAMILY,
    pairs.FAMILY,
    pd_hands.FAMILY,
    priorities.FAMILY,
    refused_edits.FAMILY,
    same_meaning.FAMILY,
    schedules.FAMILY,
    sidecars.FAMILY,
    silences.FAMILY,
    sub_objects.FAMILY,
    together.FAMILY,
    upgrade_order.FAMILY,
    webhooks.FAMILY,
    without_resyncs.FAMILY,
)
"""Families by the part of plan names before the slash."""


def generated(name: str) -> Plan:
    """The plan of a name. Raises InvalidPlan."""
    workload, _, rest = name.partition("/")
    if workload in FAMILIES:
        return FAMILIES[workload].plan(rest)
    kind, _, number = rest.rpartition("-")
    if workload not in WORKLOADS or (rest and (kind not in KINDS or not number.isdecimal())):
        kinds = ", ".join(KINDS)
        raise InvalidPlan(f"{name!r} is no file, no `seed/N`, and no `workload/kind-N` with kind one of {kinds}")
    base = WORKLOADS[workload]
    if not rest:
        return base
    return replace(base, name=name, faults=(*base.faults, KINDS[kind](int(number))), budget=base.budget + _AFTERWARDS)


def sweep(workload: str, writes: int, kinds: tuple[str, ...]) -> Iterator[Plan]:
    """One plan for each kind of fault and each of the workload's writes."""
    for kind in kinds:
        for number in range(1, writes + 1):
            yield generated(f"{workload}/{kind}-{number}")


def family(name: str, writes: Callable[[Plan], int]) -> Iterator[Plan]:
    """All plans of a family; `writes` returns the number of writes of a plan."""
    # only a run shows where the middle of a change is
    return pairs.pairs(writes) if name == pairs.FAMILY.name else FAMILIES[name].plans()
