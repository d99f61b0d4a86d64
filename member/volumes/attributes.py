"""The volume attributes class of claims: Kubernetes and its storage driver change it in place (lifecycle.md 10.3).

As in v1.6, the operator writes the class from the spec into each claim. It waits for the change only if Kubernetes
reports that the change is in progress or impossible.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member.context import ClusterContext
from member.observed.claims import Claim
from member.outcome import Done, Outcome, Refused, Waiting

_INFEASIBLE = "Infeasible"
_PENDING = "Pending"

_LOOK_AGAIN = 10.0
"""Seconds; drivers take minutes."""


@dataclass(frozen=True, slots=True)
class ClaimClass:
    """A cached bound claim, and the class that the spec's `field` names; an empty class leaves the choice open.

    `written` is True if this reconcile has written to the claim, so that the cached claim is outdated.
    """

    cached: Object
    wanted: str
    field: str
    written: bool = False


def change(ctx: ClusterContext, claims: Iterable[ClaimClass]) -> Outcome:
    """Write the wanted classes into claims, and report their progress. Raises ApiError, TransportError."""
    waiting: Outcome = Done()
    for each in claims:
        outcome = _change(ctx, each)
        if isinstance(outcome, Refused):
            return outcome
        waiting = outcome if isinstance(waiting, Done) else waiting
    return waiting


def _change(ctx: ClusterContext, each: ClaimClass) -> Outcome:
    name, claim = each.cached.metadata.name, each.cached.decode_as(Claim)
    if not each.wanted or each.written:
        return Done()
    if claim.spec.volume_attributes_class_name != each.wanted:
        return _ask(ctx, each)
    under_way = claim.status.modify_volume_status
    if under_way.target_volume_attributes_class_name != each.wanted:
        return Done()
    what = f"PersistentVolumeClaim {name} to get volume attributes class {each.wanted}"
    if under_way.status == _INFEASIBLE:
        return Refused("VolumeCantChange", f"{each.field}: the storage driver refuses {what}; name another class")
    why = "; does the class exist, and is it of this driver?" if under_way.status == _PENDING else ""
    return Waiting("GrowingVolumes", f"waiting for {what}{why}", _LOOK_AGAIN, serves=True)


def _ask(ctx: ClusterContext, each: ClaimClass) -> Outcome:
    meta = each.cached.metadata
    asked = {
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "spec": {"volumeAttributesClassName": each.wanted},
    }
    answer = ctx.deps.applier.apply(PERSISTENT_VOLUME_CLAIMS, asked, each.cached)
    if answer.decode_as(Claim).spec.volume_attributes_class_name == each.wanted:
        return Done()
    what = f"PersistentVolumeClaim {meta.name} does not keep a volume attributes class in this Kubernetes cluster"
    return Refused("VolumeCantChange", f"{each.field}: {what}; remove it, or have VolumeAttributesClass switched on")
