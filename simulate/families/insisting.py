"""Actions that other clients repeat each time the operator undoes them (`kube.contests`).

`insist/change/services/basic-pd/spec.type` is `foreign/change/services/basic-pd/spec.type` by a client that insists for
four minutes, like another controller or an admission webhook. The operator must neither repeat its write without pause
nor stay silent, and must correct the object in the end. StatefulSets are left out: changes there restart pods, so they
are undone immediately each time.
"""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, TIDB_CLUSTERS, Resource
from simulate.engine.plan import Deleted, Foreign, Insists, Plan
from simulate.families import foreign_hands
from simulate.families.family import of_known

_SECONDS = 240.0
_AFTERWARDS = 180.0
_LEFT_OUT = (STATEFUL_SETS, TIDB_CLUSTERS)
_NEVER_DELETED = (PODS, PERSISTENT_VOLUME_CLAIMS)
"""Objects that a client deletes repeatedly only to destroy the database."""


def _plans() -> Iterator[Plan]:
    steady = (plan for plan in foreign_hands.FAMILY.plans() if plan.world == "steady" and not plan.edits)
    return filter(None, map(_of, steady))


def _of(once: Plan) -> Plan | None:
    """The insisting variant of a plan; None for a plan with several actions."""
    match once.faults:
        case (Foreign() as hand,) if not _is_of(hand.target, _LEFT_OUT) and not _gives_away(hand):
            event = Insists(at=hand.at, target=hand.target, patch=hand.patch, subresource=hand.subresource)
        case (Deleted(propagation="Background") as hand,) if not _is_of(hand.target, (*_LEFT_OUT, *_NEVER_DELETED)):
            event = Insists(at=hand.at, target=hand.target)
        case _:
            return None
    name = f"{FAMILY.name}/{once.name.partition('/')[2]}"
    return replace(once, name=name, faults=(replace(event, seconds=_SECONDS),), budget=_SECONDS + _AFTERWARDS)


def _is_of(target: str, resources: Collection[Resource]) -> bool:
    return target.partition("/")[0] in map(str, resources)


def _gives_away(hand: Foreign) -> bool:
    """True if the action makes a pod or claim garbage for Kubernetes."""
    return "ownerReferences" in hand.patch.get("metadata", {}) and _is_of(hand.target, _NEVER_DELETED)


FAMILY = of_known("insist", _plans, "nothing that others insist on")
