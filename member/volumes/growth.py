"""The next step of one volume claim towards the size and storage class in its spec (lifecycle.md 10.2, VMOD-5). Pure.

A claim has v1.6's annotations for the target (`spec.`) and the reached state (`status.`) of a change; different
revisions mean that the change is in progress. Kubernetes and its storage drivers do the actual work.

A storage class says how a driver provisions a volume. What a driver can change later is a part of that; Kubernetes
requests it by a VolumeAttributesClass. The operator makes one of each storage class that volumes change to, with those
parameters (VMOD-1..4). v1.6 calls the cloud itself instead, with credentials of its own.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from apis.times import parse_time, stamp
from kube.objects import Json
from kube.resources import VOLUME_ATTRIBUTES_CLASSES
from member import labels
from member.outcome import Wait
from ports.quantity import parse

COOL_DOWN = 6 * 3600.0
"""Seconds between two changes of a volume, as in v1.6: EBS refuses an earlier one."""

_OF_STORAGE_CLASS = "tidb.pingcap.com/storage-class"
"""The label of the operator's VolumeAttributesClasses, with the annotation of the same name."""
_LONGEST, _DIGITS = 200, 10


@dataclass(frozen=True, slots=True)
class _Driver:
    """The parameters that a driver changes in place, by their names in storage classes in lower case.

    `kind` is the one that changes the type of a volume: the others then get the defaults of the new type.
    """

    parameters: Mapping[str, str]
    kind: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)


_DRIVERS: Mapping[str, _Driver] = MappingProxyType(
    {
        "ebs.csi.aws.com": _Driver({"type": "type", "iops": "iops", "throughput": "throughput"}, "type"),
        "disk.csi.azure.com": _Driver(
            {"skuname": "skuName", "diskiopsreadwrite": "DiskIOPSReadWrite", "diskmbpsreadwrite": "DiskMBpsReadWrite"},
            "skuname",
            {"storageaccounttype": "skuname"},
        ),
        "pd.csi.storage.gke.io": _Driver(
            {"provisioned-iops-on-create": "iops", "provisioned-throughput-on-create": "throughput"}
        ),
    }
)


class StorageClass(msgspec.Struct, frozen=True, rename="camel"):
    """A storage class, reduced to what makes volumes different."""

    provisioner: str = ""
    parameters: dict[str, str] | None = None
    mount_options: tuple[str, ...] | None = None
    allow_volume_expansion: bool | None = None

    def values(self) -> dict[str, str]:
        """The parameters by their names in lower case, without aliases: drivers ignore the case."""
        aliases = _DRIVERS[self.provisioner].aliases if self.provisioner in _DRIVERS else {}
        lower = {name.lower(): value for name, value in (self.parameters or {}).items()}
        return {aliases.get(name, name): value for name, value in lower.items()}


def attributes_class(name: str, storage_class: StorageClass) -> Json | None:
    """The VolumeAttributesClass of a storage class; None if it has no parameter that its driver changes in place.

    Its name is `tidb-operator-`, the name of the storage class (at most 200 characters of it), and ten digits of the
    SHA-256 of name, driver and parameters: a storage class that was recreated with other parameters gets another one.
    """
    driver = _DRIVERS.get(storage_class.provisioner)
    known = driver.parameters.items() if driver else ()
    values = storage_class.values()
    parameters = {given: values[parameter] for parameter, given in known if parameter in values}
    if not parameters:
        return None
    content = msgspec.json.encode([name, storage_class.provisioner, sorted(parameters.items())])
    digits = hashlib.sha256(content).hexdigest()[:_DIGITS]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": VOLUME_ATTRIBUTES_CLASSES.kind,
        "metadata": {
            "name": f"tidb-operator-{name[:_LONGEST].rstrip('-.')}-{digits}",
            "labels": {labels.MANAGED_BY: labels.TIDB_OPERATOR, _OF_STORAGE_CLASS: digits},
            "annotations": {_OF_STORAGE_CLASS: name},
        },
        "driverName": storage_class.provisioner,
        "parameters": parameters,
    }


def is_ours(live: Json, desired: Json) -> bool:
    """True if an object with the name of the operator's class has its labels and its content."""
    there = live["metadata"].get("labels") or {}
    is_labelled = desired["metadata"]["labels"].items() <= there.items()
    return is_labelled and all(live.get(field) == desired[field] for field in ("driverName", "parameters"))


def obstacle(old: StorageClass, new: StorageClass, new_name: str) -> str:
    """Why volumes of one storage class cannot become volumes of another in place, with the way out; empty if they can.

    Without the other parameters that both classes name, a volume would not be what a new one of that class is.
    """
    if old.provisioner != new.provisioner:
        return f"its provisioner is {old.provisioner}, not {new.provisioner}"
    driver = _DRIVERS.get(new.provisioner)
    if driver is None:
        known = ", ".join(_DRIVERS)
        return (
            f"the operator knows what {known} change in place, not {new.provisioner}; name a VolumeAttributesClass "
            "of yours in volumeAttributesClassName instead"
        )
    if fixed := ", ".join(_fixed(driver, old, new)):
        return f"{new.provisioner} cannot change {fixed} in place; name a class with the same"
    if dropped := ", ".join(_dropped(driver, old, new)):
        return f"{new_name} does not set {dropped}, so the volume would keep its own; name a class that does"
    return ""


def _fixed(driver: _Driver, old: StorageClass, new: StorageClass) -> Iterator[str]:
    """The differences that need a new volume."""
    before, after = old.values(), new.values()
    yield from sorted(
        name
        for name in (before.keys() | after.keys()) - driver.parameters.keys()
        if before.get(name) != after.get(name)
    )
    if (old.mount_options or ()) != (new.mount_options or ()):
        yield "mountOptions"


def _dropped(driver: _Driver, old: StorageClass, new: StorageClass) -> Iterator[str]:
    """The parameters that the driver would leave as they are, as the new class does not set them."""
    before, after = old.values(), new.values()
    another_kind = bool(driver.kind) and after.get(driver.kind, "") not in ("", before.get(driver.kind))
    for name in driver.parameters:
        if name in before and name not in after and not another_kind:
            yield name


_MINIMUM_WAIT = 60.0
"""Seconds between two changes of one claim; storage providers limit how often a volume may change."""
IN_PROGRESS, PENDING, INFEASIBLE = "InProgress", "Pending", "Infeasible"
"""What Kubernetes reports about a change of the VolumeAttributesClass of a claim."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted state of a volume, with the paths of its size and class. An empty class leaves the choice open.

    For a claim of another class: `attributes_class` is the VolumeAttributesClass that changes it, empty if the volume
    already has what its new class asks for, and None if it cannot change in place; `obstacle` says why and what to do.
    """

    field: str
    size: str
    class_field: str
    storage_class: str = ""
    attributes_class: str | None = None
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A bound claim. `storage_class` is the class that its volume has; `can_grow` is what the class of the claim says,
    None if unknown.

    `refused_size` is the size that its driver has rejected, if any. `spec_` and `status_` are the annotations.
    `changed_at` (RFC 3339) is the time when the last change began or ended.

    `attributes_class` is the requested VolumeAttributesClass, `current_attributes_class` the one that the volume has.
    `modification` is what Kubernetes reports about the change to the requested one, `trouble` the error of its driver.
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
    spec_class: str = ""
    attributes_class: str = ""
    current_attributes_class: str = ""
    modification: str = ""
    trouble: str = ""

    @property
    def is_changing(self) -> bool:
        """True if a change has begun and not ended."""
        return self.spec_revision != self.status_revision

    @property
    def has_left_class(self) -> bool:
        """True if a change to another class has begun that the volume has not completed."""
        return self.is_changing and self.spec_class not in ("", self.storage_class)


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
    """Record the new size and class in the claim and request them.

    `storage_class` is empty if the class stays. `attributes_class` is the VolumeAttributesClass to request: empty for
    the present one, None for none.
    """

    revision: int
    storage_class: str = ""
    attributes_class: str | None = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """Request what is already recorded; `attributes_class` is empty unless the class changes."""

    attributes_class: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """Record that the claim has reached its size and class."""


@dataclass(frozen=True, slots=True)
class WaitForClass(Wait):
    """The step is to wait for a change of the storage class; the volume serves meanwhile."""


Step: TypeAlias = Settled | Refuse | Begin | Ask | Finish | Wait


def next_step(claim: VolumeClaim, wanted: Wanted, now: Callable[[], datetime]) -> Step:
    """The next step for a claim. Raises ValueError if a size is not a quantity."""
    if impossible := _impossible(claim, wanted):
        return impossible
    if _is_recorded(claim, wanted):
        return _go_on(claim, wanted)
    if earlier := _finish_earlier_class(claim, wanted):
        return earlier
    has_size = _has_size(claim, parse(wanted.size))
    if not claim.is_changing and not changes_class(claim, wanted) and has_size:
        return Settled()
    if pause := _pause(claim, wanted, now):
        # a full volume does not wait for hours until its class may change
        return _grow_alone(claim, wanted, now) if isinstance(pause, WaitForClass) and not has_size else pause
    return _begin(claim, wanted)


def changes_class(claim: VolumeClaim, wanted: Wanted) -> bool:
    """True if the volume shall get another storage class."""
    return wanted.storage_class not in ("", claim.storage_class)


def _is_recorded(claim: VolumeClaim, wanted: Wanted) -> bool:
    """True if the change that is in progress is the wanted one."""
    if not claim.is_changing or not claim.spec_size or parse(claim.spec_size) != parse(wanted.size):
        return False
    return (claim.spec_class or claim.storage_class) == (wanted.storage_class or claim.storage_class)


def _has_size(claim: VolumeClaim, size: Decimal) -> bool:
    return parse(claim.status_size or claim.requested) == size or _has_already(claim, size)


def _grow_alone(claim: VolumeClaim, wanted: Wanted, now: Callable[[], datetime]) -> Step:
    return next_step(claim, replace(wanted, storage_class=claim.storage_class), now)


def _begin(claim: VolumeClaim, wanted: Wanted) -> Begin:
    revision = _number(claim.spec_revision) + 1
    if changes_class(claim, wanted):
        return Begin(revision, wanted.storage_class, wanted.attributes_class)
    # back to the class that the volume had before: None is allowed if it never had one
    return Begin(revision, attributes_class=(claim.current_attributes_class or None) if claim.has_left_class else "")


def _finish_earlier_class(claim: VolumeClaim, wanted: Wanted) -> Step | None:
    """The step for a change to a class that the spec no longer names: as in v1.6, one that began is completed first."""
    if claim.has_left_class and claim.modification == IN_PROGRESS:
        what = f"waiting for PersistentVolumeClaim {claim.name} to get storage class {claim.spec_class} first"
        return WaitForClass(f"{what}; its storage driver is changing it already{_with_trouble(claim)}")
    has_earlier = claim.is_changing and claim.spec_class == claim.storage_class and bool(claim.spec_size)
    if not has_earlier or not changes_class(claim, wanted):
        return None
    return Finish() if parse(claim.requested) == parse(claim.spec_size) <= parse(claim.capacity) else None


def _pause(claim: VolumeClaim, wanted: Wanted, now: Callable[[], datetime]) -> Wait | None:
    """The wait between two changes; a change of the size that is in progress can be corrected without one."""
    modifies = changes_class(claim, wanted) and bool(wanted.attributes_class) and not claim.has_left_class
    changed = parse_time(claim.changed_at)
    if changed is None or (claim.is_changing and not modifies):
        return None
    least = COOL_DOWN if modifies else _MINIMUM_WAIT
    wait = least - _distance(changed, now())
    if wait <= 0:
        return None
    until = stamp(changed + timedelta(seconds=least))
    what = f"PersistentVolumeClaim {claim.name} was changed recently; it can be changed again at {until}"
    if modifies:
        return WaitForClass(f"{what}, as storage providers refuse another storage class for six hours", wait)
    return Wait(what, wait)


def _impossible(claim: VolumeClaim, wanted: Wanted) -> Refuse | None:
    """The refusal, with the way out, if the claim can never be as wanted."""
    if unchangeable := _impossible_class(claim, wanted):
        return Refuse(wanted.class_field, claim.name, unchangeable)
    impossible = _impossible_size(claim, wanted)
    return Refuse(wanted.field, claim.name, impossible) if impossible else None


def _impossible_class(claim: VolumeClaim, wanted: Wanted) -> str:
    """Why the claim can never have the wanted class, and the way out; empty if it can."""
    old, new = claim.storage_class, wanted.storage_class
    if not changes_class(claim, wanted):
        return ""
    if wanted.attributes_class is None:
        way_out = wanted.obstacle or f"; restore {old}"
        return f"has storage class {old}, which cannot be changed to {new} while it holds data{way_out}"
    if claim.modification == INFEASIBLE and claim.attributes_class == wanted.attributes_class:
        way_out = f"restore {old}, or name another one"
        return f"has storage class {old}: the storage driver refuses {new}{_with_trouble(claim)}; {way_out}"
    return ""


def _with_trouble(claim: VolumeClaim) -> str:
    return f" ({claim.trouble})" if claim.trouble else ""


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
    size, attributes_class = parse(wanted.size), ""
    if changes_class(claim, wanted):
        attributes_class = wanted.attributes_class or ""
    # Kubernetes reports a VolumeAttributesClass that it does not find as pending: it is created again
    has_asked = claim.attributes_class == attributes_class and claim.modification != PENDING
    if parse(claim.requested) != size or (attributes_class and not has_asked):
        return Ask(attributes_class)
    if infeasible := infeasibility(claim, wanted):
        return Wait(infeasible)
    if parse(claim.capacity) < size:
        return Wait(f"waiting for PersistentVolumeClaim {claim.name} to grow from {claim.capacity} to {wanted.size}")
    if attributes_class:
        what = f"waiting for PersistentVolumeClaim {claim.name} to get storage class {wanted.storage_class}"
        return WaitForClass(f"{what}{_with_trouble(claim) or _unnoticed(claim)}")
    return Finish()


def _unnoticed(claim: VolumeClaim) -> str:
    """The note that no storage driver has reacted."""
    return "" if claim.modification else " (its storage driver has not begun; does it support VolumeAttributesClass?)"


def _number(revision: str) -> int:
    return int(revision) if revision.isdecimal() else 0


def _distance(changed: datetime, now: datetime) -> float:
    """Seconds between two times. A clock that was set back must not keep a full disk from growing (F44)."""
    return abs((now - changed).total_seconds())
