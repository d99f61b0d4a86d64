"""Two plans of other families at once, in the same cluster: where what each is about meets.

`together/loss/tikv-4.node.config@recorded&7&foreign/change/services/basic-pd/spec.type` does the second plan's events
seven seconds later than that plan does. Both ends are right, as are those in which a cluster converges.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import groupby
from operator import attrgetter

from msgspec.structs import replace

from ports.randomness import SeededRandomness
from simulate import (
    crossed_mistakes,
    flips,
    foreign_hands,
    insisting,
    invalid_specs,
    loss_and_edit,
    mistakes,
    webhooks,
)
from simulate.draws import pick
from simulate.loss_and_edit import CONVERGED
from simulate.plan import DELETED, Edit, Fault, InvalidPlan, Plan

FAMILY = "together"

_COUNT = 2000
_AND = "&"
_LATER = (0.5, 2.0, 7.0, 20.0, 45.0)
"""Seconds until the second one begins."""
_MORE = 400.0
"""Seconds that both get to heal on top of what the slower one gets."""

_OF_OTHERS: Mapping[str, tuple[Callable[[str], Plan], Callable[[], Iterator[Plan]]]] = {
    crossed_mistakes.FAMILY: (crossed_mistakes.crossed, crossed_mistakes.crosses),
    flips.FAMILY: (flips.flip, flips.flips),
    foreign_hands.FAMILY: (foreign_hands.foreign, foreign_hands.foreign_hands),
    foreign_hands.OTHERS: (foreign_hands.foreign_to_others, foreign_hands.foreign_hands_of_others),
    insisting.FAMILY: (insisting.insist, insisting.insistent),
    invalid_specs.FAMILY: (invalid_specs.invalid, invalid_specs.invalids),
    loss_and_edit.FAMILY: (loss_and_edit.loss, loss_and_edit.losses),
    mistakes.FAMILY: (mistakes.mistake, mistakes.mistakes),
    webhooks.FAMILY: (webhooks.admission, webhooks.admissions),
}


def together(rest: str) -> Plan:
    """The plan called `together/<rest>`. Raises InvalidPlan."""
    match rest.split(_AND):
        case [first, later, second] if later.replace(".", "", 1).isdecimal():
            return _both(_named(first), float(later), _named(second))
        case _:
            raise InvalidPlan(f"{rest!r} is no `FAMILY/PLAN{_AND}SECONDS{_AND}FAMILY/PLAN`")


def togethers() -> Iterator[Plan]:
    """As many as are drawn: two families first, for some have thousands of plans and others few."""
    draw = SeededRandomness(FAMILY)
    for _ in range(_COUNT):
        one, other = _pair(draw)
        first, second = pick(draw, one), pick(draw, other)
        yield _both(first, pick(draw, _LATER), second)


def _pair(draw: SeededRandomness) -> tuple[list[Plan], list[Plan]]:
    """The plans of two families in the same cluster."""
    cluster = pick(draw, [cluster for cluster, families in _clusters().items() if len(families) > 1])
    families = _clusters()[cluster]
    one = pick(draw, list(families))
    return families[one], families[pick(draw, [each for each in families if each != one])]


@cache
def _clusters() -> Mapping[str, Mapping[str, list[Plan]]]:
    """The plans that can be put together, by cluster and family."""
    found: dict[str, dict[str, list[Plan]]] = {}
    for family, (_, plans) in _OF_OTHERS.items():
        able = sorted((plan for plan in plans() if _begins_ready(plan)), key=attrgetter("cluster"))
        for cluster, group in groupby(able, key=attrgetter("cluster")):
            found.setdefault(cluster, {})[family] = list(group)
    return found


def _begins_ready(plan: Plan) -> bool:
    return plan.world == "steady" and not plan.neighbours and plan.ends != DELETED


def _named(name: str) -> Plan:
    family, _, rest = name.partition("/")
    if family not in _OF_OTHERS:
        raise InvalidPlan(f"{name!r} is of no family out of {', '.join(_OF_OTHERS)}")
    return _OF_OTHERS[family][0](rest)


def _both(first: Plan, later: float, second: Plan) -> Plan:
    if first.cluster != second.cluster or not (_begins_ready(first) and _begins_ready(second)):
        raise InvalidPlan(f"{first.name!r} and {second.name!r} do not begin in the same Ready cluster")
    return replace(
        first,
        name=f"{FAMILY}/{first.name}{_AND}{later:g}{_AND}{second.name}",
        edits=(*first.edits, *(_moved(each, later) for each in second.edits)),
        given=(*first.given, *(each for each in second.given if each not in first.given)),
        faults=(*first.faults, *(_moved(each, later) for each in second.faults)),
        budget=max(first.budget, second.budget + later) + _MORE,
        reference=False,
        ends=tuple(dict.fromkeys((*CONVERGED, *first.ends_in, *second.ends_in))),
        conflict=first.conflict or second.conflict,
        theirs=(*first.theirs, *second.theirs),
        ends_beside={**first.ends_beside, **second.ends_beside},
    )


def _moved(event: Edit | Fault, seconds: float) -> Edit | Fault:
    """An event so much later; what waits for a write, or for something to be there, does so still."""
    return event if event.at is None else replace(event, at=event.at + seconds)
