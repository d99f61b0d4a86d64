"""The next step of one volume claim towards the size in its spec (lifecycle.md 10.2). Pure.

A claim has v1.6's annotations for the target (`spec.`) and the reached state (`status.`) of a change; different
revisions mean that the change is in progress. Kubernetes and its storage drivers do the actual growing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from apis.times import parse_time, stamp
from member.outcome import Wait
from ports.quantity import parse

_MINIMUM_WAIT = 60.0
"""Seconds between two changes of one claim; storage providers limit how often a volume may change."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted state of a volume, with the paths of its size and class. An empty class leaves the choice open."""

    field: str
    size: str
    class_field: str
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A bound claim. `storage_class` is the class that it got; `can_grow` is what that class says, None if unknown.

    `refused_size` is the size that its driver has rejected, if any. `spec_` and `status_` are the annotations.
    `changed_at` (RFC 3339) is the time when the last change began or ended.
    """

    name: str
    requested: str
    capacity: str
    storage_class: str
    can_grow: bool | None = None
    refused_size: str = ""
    spec_revision: str = ""
    spec_size: str = ""
    status_revision: str = ""
    status_size: str = ""
    changed_at: str = ""

    @property
    def is_changing(self) -> bool:
        """True if a change has begun and not ended."""
        return self.spec_revision != self.status_revision


@dataclass(frozen=True, slots=True)
class Settled:
    """The claim is as wanted."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The claim cannot become what `field` asks for; `what` continues a sentence about it, e.g. "has 2Gi and …"."""

    field: str
    claim: str
    what: str

    @property
    def why(self) -> str:
        """The sentence for the user."""
        return f"{self.field}: PersistentVolumeClaim {self.claim} {self.what}"


def reasons(refused: Iterable[Refuse]) -> list[str]:
    """The sentences of refusals. One sentence stands for all claims of which the same is true."""
    alike: dict[tuple[str, str], list[str]] = {}
    for refuse in refused:
        alike.setdefault((refuse.field, refuse.what), []).append(refuse.claim)
    return [Refuse(field, _first_of(claims), what).why for (field, what), claims in alike.items()]


def _first_of(claims: Sequence[str]) -> str:
    first, *others = claims
    if not others:
        return first
    return f"{first}, like {others[0]}," if len(others) == 1 else f"{first}, like {len(others)} others,"


@dataclass(frozen=True, slots=True)
class Begin:
    """Record the new size in the claim and request it."""

    revision: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Request the size that is already recorded."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Record that the claim has reached its size."""


Step: TypeAlias = Settled | Refuse | Begin | Ask | Finish | Wait


def next_step(claim: VolumeClaim, wanted: Wanted, now: Callable[[], datetime]) -> Step:
    """The next step for a claim. Raises ValueError if a size is not a quantity."""
    if impossible := _impossible(claim, wanted):
        return impossible
    size = parse(wanted.size)
    if claim.is_changing and claim.spec_size and parse(claim.spec_size) == size:
        return _go_on(claim, wanted)
    if not claim.is_changing and (parse(claim.status_size or claim.requested) == size or _has_already(claim, size)):
        return Settled()
    changed = parse_time(claim.changed_at)
    wait = _MINIMUM_WAIT - _distance(changed, now()) if changed else 0.0
    if changed and not claim.is_changing and wait > 0:
        until = stamp(changed + timedelta(seconds=_MINIMUM_WAIT))
        return Wait(
            f"PersistentVolumeClaim {claim.name} was changed recently; it can be changed again at {until}", wait
        )
    return Begin(_number(claim.spec_revision) + 1)


def _impossible(claim: VolumeClaim, wanted: Wanted) -> Refuse | None:
    """The refusal, with the way out, if the claim can never be as wanted."""
    if wanted.storage_class not in ("", claim.storage_class):
        what = (
            f"has storage class {claim.storage_class}, which cannot be changed to {wanted.storage_class} while it "
            f"holds data; restore {claim.storage_class}"
        )
        return Refuse(wanted.class_field, claim.name, what)
    impossible = _impossible_size(claim, wanted)
    return Refuse(wanted.field, claim.name, impossible) if impossible else None


def _impossible_size(claim: VolumeClaim, wanted: Wanted) -> str:
    """Why the claim can never have the wanted size, and the way out; empty if it can."""
    size, capacity = parse(wanted.size), parse(claim.capacity)
    # a provisioner may give more than is requested
    least = claim.capacity if capacity < parse(claim.requested) else claim.requested
    if size < parse(least):
        return f"has {least} and cannot shrink to {wanted.size}; set {least} or more"
    if size == capacity < parse(claim.requested):
        return (
            f"has {claim.capacity} and requests {claim.requested}, which Kubernetes does not lower to the current "
            f"size; set more than {claim.capacity}"
        )
    if size > capacity and claim.can_grow is False:
        return (
            f"has storage class {claim.storage_class}, which does not exist or lacks allowVolumeExpansion; "
            f"allow expansion there, or set {claim.capacity}"
        )
    return ""


def _has_already(claim: VolumeClaim, size: Decimal) -> bool:
    """True if a volume that cannot grow has the wanted size already, because its provisioner rounded up."""
    return claim.can_grow is False and parse(claim.requested) <= size <= parse(claim.capacity)


def infeasibility(claim: VolumeClaim, wanted: Wanted) -> str:
    """The message that the driver cannot provide the wanted size, with the way out; empty if it may."""
    size = parse(wanted.size)
    if not claim.refused_size or parse(claim.refused_size) != size or parse(claim.capacity) >= size:
        return ""
    what = f"the storage driver can't grow PersistentVolumeClaim {claim.name} from {claim.capacity} to {wanted.size}"
    return f"{wanted.field}: {what}; have room made for it, or set less, but more than {claim.capacity}"


def _go_on(claim: VolumeClaim, wanted: Wanted) -> Step:
    size = parse(wanted.size)
    if parse(claim.requested) != size:
        return Ask()
    if infeasible := infeasibility(claim, wanted):
        return Wait(infeasible)
    if parse(claim.capacity) < size:
        return Wait(f"waiting for PersistentVolumeClaim {claim.name} to grow from {claim.capacity} to {wanted.size}")
    return Finish()


def _number(revision: str) -> int:
    return int(revision) if revision.isdecimal() else 0


def _distance(changed: datetime, now: datetime) -> float:
    """Seconds between two times. A clock that was set back must not keep a full disk from growing (F44)."""
    return abs((now - changed).total_seconds())
