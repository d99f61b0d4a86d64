"""The sizes and classes of all pods' volumes for `status.<component>.volumes` (lifecycle.md 5.8)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from apis.accessor import find
from apis.cluster import Cluster
from apis.shared import StorageVolumeStatus
from kube.objects import Json, Object
from member.context import ClusterContext
from member.objects.volumes import data_claim, has_storage, has_storage_claims, storage_claims, storage_volume_claims
from member.observed.claims import Claim, claim_names
from ports.quantity import parse

UNKNOWN_CLASS = "<unknown>"


@dataclass(frozen=True, slots=True)
class DesiredVolume:
    """A volume that every pod should have. An empty class means the default of the Kubernetes cluster.

    An empty `attributes_class` means the default for a new volume; an existing volume keeps its own.
    """

    name: str
    size: str
    storage_class: str
    attributes_class: str = ""


@dataclass(frozen=True, slots=True)
class ActualVolume:
    """A bound volume of one pod."""

    name: str
    capacity: str
    storage_class: str
    requested: str = ""

    def has(self, size: Decimal) -> bool:
        """True if the volume has the wanted size; a provisioner may give more than is requested."""
        capacity = parse(self.capacity)
        return capacity == size or (capacity > size and bool(self.requested) and parse(self.requested) == size)


def desired_templates(tc: Cluster, kind: str) -> list[Json]:
    """The claim templates of a component with storage (10.1), without templates that lack a size."""
    found = find(tc, kind)
    templates: list[Json] = []
    if found is not None and has_storage(found.spec):
        volume = found.type.data_volume
        data = [data_claim(volume, found.storage_request, found.spec)] if volume else []
        templates = [*data, *storage_volume_claims(kind, found.spec)]
    elif found is not None and has_storage_claims(found.spec):
        templates = storage_claims(found.spec)
    return [template for template in templates if template["spec"]["resources"]]


def desired_volumes(tc: Cluster, kind: str) -> list[DesiredVolume]:
    """The volumes of a component according to its spec."""
    return [_desired(template) for template in desired_templates(tc, kind)]


def _desired(template: Json) -> DesiredVolume:
    spec = template["spec"]
    size = spec["resources"]["requests"]["storage"]
    classes = spec.get("storageClassName", ""), spec.get("volumeAttributesClassName", "")
    return DesiredVolume(template["metadata"]["name"], str(size), *classes)


def volume_statuses(
    desired: Iterable[DesiredVolume], actual: Sequence[ActualVolume], unreadable_classes: frozenset[str] = frozenset()
) -> dict[str, StorageVolumeStatus]:
    """Compare wanted with actual volumes; `actual` holds the volumes of all pods. A volume that no pod has is left out.

    A desired class that cannot be read is shown as unknown; then only sizes are compared.
    """
    found = {wanted: [volume for volume in actual if volume.name == wanted.name] for wanted in desired}
    return {
        wanted.name: _status(wanted, volumes, wanted.storage_class in unreadable_classes)
        for wanted, volumes in found.items()
        if volumes
    }


def _status(wanted: DesiredVolume, volumes: Sequence[ActualVolume], class_is_unknown: bool) -> StorageVolumeStatus:
    size = parse(wanted.size)
    shown_class = UNKNOWN_CLASS if class_is_unknown else wanted.storage_class or volumes[0].storage_class
    compared = "" if class_is_unknown else wanted.storage_class
    outdated = [v for v in volumes if not v.has(size) or compared not in ("", v.storage_class)]
    modified = len(volumes) - len(outdated)
    return StorageVolumeStatus(
        name=wanted.name,
        bound_count=len(volumes),
        current_count=len(outdated) or modified,
        current_capacity=outdated[0].capacity if outdated else wanted.size,
        current_storage_class=outdated[0].storage_class if outdated else shown_class,
        modified_count=modified,
        modified_capacity=wanted.size,
        modified_storage_class=shown_class,
        resized_count=modified,
        resized_capacity=wanted.size,
    )


def observe_volumes(ctx: ClusterContext, kind: str, pods: Iterable[Object]) -> dict[str, StorageVolumeStatus]:
    """`status.<component>.volumes` from the caches, without pods that have a claim that is missing or not bound."""
    desired = desired_volumes(ctx.tc, kind)
    if not desired:
        return {}
    names = {volume.name for volume in desired}
    actual = [volume for pod in pods for volume in _volumes_of(ctx, names, claim_names(pod))]
    return volume_statuses(desired, actual, _unreadable_classes(ctx, desired))


def _volumes_of(ctx: ClusterContext, names: set[str], claims: Mapping[str, str]) -> list[ActualVolume]:
    volumes = []
    for name, claim_name in claims.items():
        if name not in names:
            continue
        cached = ctx.listers.persistent_volume_claims.get(ctx.namespace, claim_name)
        claim = cached.decode_as(Claim) if cached else None
        if claim is None or not claim.is_bound or not claim.status.capacity.storage:
            return []
        requested = claim.spec.resources.requests.storage
        volumes.append(ActualVolume(name, claim.status.capacity.storage, claim.spec.storage_class_name, requested))
    return volumes


def _unreadable_classes(ctx: ClusterContext, desired: Iterable[DesiredVolume]) -> frozenset[str]:
    """The named classes that do not exist or that the operator may not read."""
    lister = ctx.listers.storage_classes
    named = {volume.storage_class for volume in desired if volume.storage_class}
    return frozenset(name for name in named if lister is None or lister.get("", name) is None)
