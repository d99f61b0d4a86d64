"""What others do to objects, again each time that the operator undoes it (`kube.contests`).

`insist/change/services/basic-pd/spec.type` is `foreign/change/services/basic-pd/spec.type` by somebody who does not
give in for four minutes, as another controller or an admission webhook does. The operator may not write it for ever
without a pause or a word, and must put it right in the end. StatefulSets are left out: what is changed there restarts
pods, so it is undone at once, each time.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from simulate import foreign_hands
from simulate.plan import Deleted, Foreign, Insists, InvalidPlan, Plan

FAMILY = "insist"

_SECONDS = 240.0
_AFTERWARDS = 180.0
_LEFT_OUT = (STATEFUL_SETS, TIDB_CLUSTERS)
_NEVER_DELETED = (PODS, PERSISTENT_VOLUME_CLAIMS)
"""Whoever deletes these again and again wants no database."""


def insist(rest: str) -> Plan:
    """The plan called `insist/<rest>`. Raises InvalidPlan."""
    if rest not in _plans():
        raise InvalidPlan(f"{rest!r} is nothing that others insist on; `python -m simulate sweep {FAMILY}` does all")
    return _plans()[rest]


def insistent() -> Iterator[Plan]:
    """All of them."""
    return iter(_plans().values())


@cache
def _plans() -> Mapping[str, Plan]:
    """All plans by the part of their names behind the family."""
    found = (_of(plan) for plan in foreign_hands.foreign_hands() if plan.world == "steady" and not plan.edits)
    return {plan.name.partition("/")[2]: plan for plan in found if plan is not None}


def _of(once: Plan) -> Plan | None:
    """The plan in which others insist on what they do in another one; None where they do several things."""
    match once.faults:
        case (Foreign() as hand,) if not _is_of(hand.target, _LEFT_OUT) and not _gives_away(hand):
            event = Insists(at=hand.at, target=hand.target, patch=hand.patch, subresource=hand.subresource)
        case (Deleted(propagation="Background") as hand,) if not _is_of(hand.target, (*_LEFT_OUT, *_NEVER_DELETED)):
            event = Insists(at=hand.at, target=hand.target)
        case _:
            return None
    name = f"{FAMILY}/{once.name.partition('/')[2]}"
    return replace(once, name=name, faults=(replace(event, seconds=_SECONDS),), budget=_SECONDS + _AFTERWARDS)


def _is_of(target: str, resources: Collection[Resource]) -> bool:
    return target.partition("/")[0] in map(str, resources)


def _gives_away(hand: Foreign) -> bool:
    """Whether a pod or claim is garbage to Kubernetes after it."""
    return "ownerReferences" in hand.patch.get("metadata", {}) and _is_of(hand.target, _NEVER_DELETED)
