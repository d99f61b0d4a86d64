"""Two plans of other families at once, in the same cluster.

`together/loss/tikv-4.node.config@recorded&7&foreign/change/services/basic-pd/spec.type` shifts the second plan's events
by seven seconds. Both plans' ends are allowed, and those in which a cluster converges.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from msgspec.structs import replace

from ports.randomness import SeededRandomness
from simulate.engine.plan import DELETED, Fault, InvalidPlan, Plan, World
from simulate.engine.worlds import MORTAL
from simulate.families import (
    crossed_mistakes,
    flips,
    foreign_hands,
    insisting,
    invalid_specs,
    loss_and_edit,
    losses_midway,
    losses_undone,
    mistakes,
    operator_troubles,
    pd_hands,
    sidecars,
    webhooks,
)
from simulate.families.draws import pick
from simulate.families.family import Family, by_name
from simulate.families.loss_and_edit import CONVERGED

_COUNT = 2000
_AND = "&"
_LATER = (0.5, 2.0, 7.0, 20.0, 45.0)
"""Seconds until the second plan begins."""
_MORE = 400.0
"""Additional seconds for both to heal, beside the slower plan's."""

_FOR_GOOD = {loss_and_edit.FAMILY.name, losses_midway.FAMILY.name}
"""Families with a permanent loss, of which a cluster can bear only one."""

_OF_OTHERS: Mapping[str, Family] = by_name(
    crossed_mistakes.FAMILY,
    flips.FAMILY,
    foreign_hands.FAMILY,
    foreign_hands.OTHERS,
    insisting.FAMILY,
    invalid_specs.FAMILY,
    loss_and_edit.FAMILY,
    losses_midway.FAMILY,
    losses_undone.FAMILY,
    mistakes.FAMILY,
    operator_troubles.FAMILY,
    pd_hands.FAMILY,
    sidecars.FAMILY,
    webhooks.FAMILY,
)


def _plan(rest: str) -> Plan:
    """The plan called `together/<rest>`. Raises InvalidPlan."""
    match rest.split(_AND):
        case [first, later, second] if later.replace(".", "", 1).isdecimal():
            return _both(_named(first), float(later), _named(second))
        case _:
            raise InvalidPlan(f"{rest!r} is no `FAMILY/PLAN{_AND}SECONDS{_AND}FAMILY/PLAN`")


def drawn(families: Iterable[Family]) -> Iterator[Plan]:
    """Random plans: two families first, because some have thousands of plans and others few."""
    draw = SeededRandomness(FAMILY.name)
    clusters = {cluster: found for cluster, found in _by_cluster(families).items() if len(found) > 1}
    for _ in range(_COUNT):
        in_one = clusters[pick(draw, list(clusters))]
        one = pick(draw, list(in_one))
        other = pick(draw, [each for each in in_one if each != one and {each, one} != _FOR_GOOD])
        first, second = pick(draw, in_one[one]), pick(draw, in_one[other])
        yield _both(first, pick(draw, _LATER), second)


def _by_cluster(families: Iterable[Family]) -> Mapping[str, Mapping[str, list[Plan]]]:
    """The plans that can be combined, by cluster and family."""
    found: dict[str, dict[str, list[Plan]]] = {}
    for family in families:
        able = sorted((plan for plan in family.plans() if _begins_ready(plan)), key=attrgetter("cluster"))
        for cluster, group in groupby(able, key=attrgetter("cluster")):
            found.setdefault(cluster, {})[family.name] = list(group)
    return found


def _begins_ready(plan: Plan) -> bool:
    return plan.world == "steady" and not plan.neighbours and plan.ends != DELETED


def _named(name: str) -> Plan:
    family, _, rest = name.partition("/")
    if family not in _OF_OTHERS:
        raise InvalidPlan(f"{name!r} is of no family out of {', '.join(_OF_OTHERS)}")
    return _OF_OTHERS[family].plan(rest)


def _both(first: Plan, later: float, second: Plan) -> Plan:
    if first.cluster != second.cluster or not (_begins_ready(first) and _begins_ready(second)):
        raise InvalidPlan(f"{first.name!r} and {second.name!r} do not begin in the same Ready cluster")
    return replace(
        first,
        name=f"{FAMILY.name}/{first.name}{_AND}{later:g}{_AND}{second.name}",
        edits=(*first.edits, *(edit.postponed(later) for edit in second.edits)),
        given=(*first.given, *(each for each in second.given if each not in first.given)),
        faults=tuple(map(_if_there, (*first.faults, *(fault.postponed(later) for fault in second.faults)))),
        budget=max(first.budget, second.budget + later) + _MORE,
        reference=False,
        # one plan may undo what the other waits for
        awaited=False,
        ends=tuple(dict.fromkeys((*CONVERGED, *first.ends_in, *second.ends_in, *_ends_of_both(first, second)))),
        conflicts=(*first.conflicts, *second.conflicts),
        theirs=(*first.theirs, *second.theirs),
        ends_beside={**first.ends_beside, **second.ends_beside},
    )


def _ends_of_both(first: Plan, second: Plan) -> Iterator[str]:
    """Further allowed reasons: one plan may take all that the other has left, or block it."""
    if first.cluster in MORTAL:
        yield from ("SubstituteLost", "NodeLost")
        if any("replicas" in edit.spec.get("pd", {}) for edit in (*first.edits, *second.edits)):
            # PDQuorum: both members of two are needed, so neither restarts for the other plan's change
            yield from ("PDQuorumLost", "PDQuorum")


def _if_there(fault: Fault) -> Fault:
    """A fault that is skipped if the other plan has removed its pod."""
    return replace(fault, if_there=True) if isinstance(fault, World) else fault


FAMILY = Family("together", _plan, lambda: drawn(_OF_OTHERS.values()))
