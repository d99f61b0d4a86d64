"""Volume claims and the volumes behind them (lifecycle.md 5.8). Reads only.

Also the claims that pods mount, and claims that another client has deleted (R27).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from operator import attrgetter

import msgspec

from apis import pod_commands
from apis.accessor import find
from apis.cluster import Cluster
from apis.data_volumes import cluster_id_of, clusters_of_claim
from apis.shared import StorageVolumeStatus
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS
from member import labels
from member.context import ClusterContext
from member.naming import pvc_name
from member.objects.volumes import data_claim, has_storage, has_storage_claims, storage_claims, storage_volume_claims
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Refused, Waiting
from ports.quantity import parse

BOUND = "Bound"
_MODIFY_ERROR = "ModifyVolumeError"
LONGEST_MESSAGE = 300
"""The maximum length of a shown message, in characters."""
_INFEASIBLE = ("ControllerResizeInfeasible", "NodeResizeInfeasible")


class ClaimSource(msgspec.Struct, frozen=True, rename="camel"):
    """The claim behind a volume of a pod."""

    claim_name: str


class PodVolume(msgspec.Struct, frozen=True, rename="camel"):
    """One volume of a pod."""

    name: str
    persistent_volume_claim: ClaimSource | None = None


class PodVolumes(msgspec.Struct, frozen=True):
    """The part of a pod's spec that names its volumes."""

    volumes: tuple[PodVolume, ...] = ()


class PodName(msgspec.Struct, frozen=True):
    """The part of a pod's metadata that names its own claims."""

    name: str = ""


class PodWithVolumes(msgspec.Struct, frozen=True, dict=True):
    """A pod, reduced to its volumes."""

    spec: PodVolumes
    metadata: PodName = PodName()

    @cached_property
    def claims(self) -> Mapping[str, str]:
        """The names of the claims that the pod mounts, by the name of its volume."""
        return {
            volume.name: volume.persistent_volume_claim.claim_name
            for volume in self.spec.volumes
            if volume.persistent_volume_claim
        }

    @cached_property
    def own_claims(self) -> Sequence[str]:
        """The claims that were created for the pod from claim templates."""
        return [claim for volume, claim in self.claims.items() if claim == pvc_name(volume, self.metadata.name)]


class Storage(msgspec.Struct, frozen=True):
    """A requested or actual size, as a quantity; empty if unknown."""

    storage: str = ""


class Requests(msgspec.Struct, frozen=True):
    """The resources that a claim requests."""

    requests: Storage = msgspec.field(default_factory=Storage)


class Given(msgspec.Struct, frozen=True):
    """A field that is only checked for presence."""


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The request of a claim, the source of its data, and the volume that it is bound to."""

    volume_name: str = ""
    data_source: Given | None = None
    data_source_ref: Given | None = None
    selector: Given | None = None
    storage_class_name: str = ""
    resources: Requests = msgspec.field(default_factory=Requests)
    volume_attributes_class_name: str = ""


class ModifyVolumeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The volume attributes class that a claim is changing to, and the progress; empty if no change is pending."""

    target_volume_attributes_class_name: str = ""
    status: str = ""


class ClaimCondition(msgspec.Struct, frozen=True):
    """A condition that Kubernetes or a storage driver sets on a claim."""

    type: str = ""
    status: str = ""
    message: str = ""


class ClaimStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a claim: phase, sizes, pending changes."""

    phase: str = ""
    capacity: Storage = msgspec.field(default_factory=Storage)
    allocated_resources: Storage = msgspec.field(default_factory=Storage)
    allocated_resource_statuses: Storage = msgspec.field(default_factory=Storage)
    modify_volume_status: ModifyVolumeStatus = msgspec.field(default_factory=ModifyVolumeStatus)
    current_volume_attributes_class_name: str = ""
    conditions: tuple[ClaimCondition, ...] = ()


class Claim(msgspec.Struct, frozen=True, dict=True):
    """The part of a PersistentVolumeClaim that decisions read.

    What follows from it is computed once for each version of the claim.
    """

    spec: ClaimSpec
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)

    @cached_property
    def is_bound(self) -> bool:
        """True if the claim is bound to a volume."""
        return self.status.phase == BOUND and bool(self.spec.volume_name)

    @cached_property
    def refused_size(self) -> str:
        """The size that the storage driver has rejected as infeasible (KEP-1790); empty if it has rejected none."""
        status = self.status
        return status.allocated_resources.storage if status.allocated_resource_statuses.storage in _INFEASIBLE else ""

    @cached_property
    def trouble_of_modification(self) -> str:
        """The storage driver's error about a change of the volume attributes class; empty if it reports none."""
        for each in self.status.conditions:
            if each.type == _MODIFY_ERROR and each.status == "True":
                return each.message[:LONGEST_MESSAGE]
        return ""


def storage_class_of(claim: Object) -> str:
    """The storage class that a claim's volume has: once it was changed in place, the annotation names it (VMOD-2)."""
    changed = claim.metadata.annotations.get(labels.STATUS_STORAGE_CLASS)
    return changed or claim.decode_as(Claim).spec.storage_class_name


def awaits_data(claim: Object) -> bool:
    """True if a claim expects a volume with data, e.g. because a backup tool has restored the claim.

    The operator's templates have neither a data source nor a selector. A member or store id in the labels means data,
    too.
    """
    asked, labelled = claim.decode_as(Claim).spec, claim.metadata.labels
    chosen = any(given is not None for given in (asked.data_source, asked.data_source_ref, asked.selector))
    return chosen or labels.MEMBER_ID in labelled or labels.STORE_ID in labelled


def claim_names(pod: Object) -> Mapping[str, str]:
    """The names of the claims that a pod mounts, by the name of the pod's volume."""
    return pod.decode_as(PodWithVolumes).claims


def lacks_claims(stateful_set: Json, pod: Object) -> bool:
    """True if a pod was created without the claim of one of the StatefulSet's templates."""
    templates = stateful_set["spec"].get("volumeClaimTemplates") or ()
    wanted = {pvc_name(template["metadata"]["name"], pod.metadata.name) for template in templates}
    return not wanted.issubset(own_claims(pod))


def own_claims(pod: Object) -> Sequence[str]:
    """The names of the claims that were created for a pod from claim templates. Its other claims are the user's."""
    return pod.decode_as(PodWithVolumes).own_claims


def claims_of(ctx: ClusterContext, pod: Object) -> list[Object]:
    """The cached claims that a pod mounts, without claims that are not in the cache."""
    found = (ctx.listers.persistent_volume_claims.get(ctx.namespace, name) for name in claim_names(pod).values())
    return [claim for claim in found if claim is not None]


def claims_of_cluster(ctx: ClusterContext) -> list[Object]:
    """The cached claims of the cluster's pods, sorted by name."""
    found = ctx.listers.persistent_volume_claims.list(ctx.namespace, labels.cluster_labels(ctx.tc))
    own = [each for each in found if ctx.name in clusters_of_claim(each.metadata.name, each.metadata.labels)]
    return sorted(own, key=attrgetter("metadata.name"))


def claimed_ids(ctx: ClusterContext) -> frozenset[str]:
    """The ids of the PD clusters that wrote the data in the cached claims of the TidbCluster (F40).

    Empty if the status has the id: then the claims are not searched.
    """
    return frozenset() if ctx.tc.status.cluster_id else labelled_ids(ctx)


def labelled_ids(ctx: ClusterContext) -> frozenset[str]:
    """Like `claimed_ids`, regardless of the status."""
    # selected by name only: claims may date from a time when the cluster had another instance name
    any_instance = {labels.NAME: ctx.tc.LABELLED_NAME, labels.MANAGED_BY: labels.TIDB_OPERATOR}
    named = ctx.listers.persistent_volume_claims.by_index(_clusters, f"{ctx.namespace}/{ctx.name}")
    own = (claim.metadata for claim in named if any_instance.items() <= claim.metadata.labels.items())
    found = (cluster_id_of(meta.labels, meta.annotations) for meta in own)
    return frozenset(found) - {""}


def _clusters(claim: Object) -> list[str]:
    """The clusters that a claim may belong to, as `namespace/name`."""
    meta = claim.metadata
    return [f"{meta.namespace}/{cluster}" for cluster in clusters_of_claim(meta.name, meta.labels)]


def volume_being_deleted(ctx: ClusterContext, component: str) -> Refused | Waiting | None:
    """Why the operator restarts no pod of a component: a Ready pod would lose its volume. None if none would."""
    pods = (pod for pod in pods_of(ctx, component) if pod.decode_as(Pod).is_ready)
    return next((lost for pod in pods if (lost := _lost(pod, claims_of(ctx, pod)))), None)


def would_lose_volume(ctx: ClusterContext, pod: Object) -> Refused | Waiting | None:
    """Like `volume_being_deleted`, for one pod, with a live read of its claims. Raises ApiError, TransportError."""
    found = (ctx.deps.client.find(PERSISTENT_VOLUME_CLAIMS, name, ctx.namespace) for name in claim_names(pod).values())
    return _lost(pod, filter(None, found))


def _lost(pod: Object, claims: Iterable[Object]) -> Refused | Waiting | None:
    claim = next((each for each in claims if each.metadata.deletion_timestamp), None)
    if claim is None or pod.metadata.deletion_timestamp:
        return None
    name = pod.metadata.name
    if pod_commands.replaces_volumes(pod.metadata.annotations):
        return Waiting("ReplacingVolume", f"waiting for pod {name}, whose volumes are replaced by command")
    what = f"PersistentVolumeClaim {claim.metadata.name} is being deleted; its data is lost when pod {name} ends"
    way_out = f"annotate the pod with {pod_commands.REPLACE_VOLUME}=true, which moves the data away first"
    return Refused("VolumeBeingDeleted", f"{what}, so no Ready pod beside it is restarted; {way_out}")


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
    component = find(tc, kind)
    templates: list[Json] = []
    if component is not None and has_storage(component.spec):
        volume = component.type.data_volume
        data = [data_claim(volume, component.storage_request, component.spec)] if volume else []
        templates = [*data, *storage_volume_claims(kind, component.spec)]
    elif component is not None and has_storage_claims(component.spec):
        templates = storage_claims(component.spec)
    return [template for template in templates if template["spec"]["resources"]]


def desired_volumes(tc: Cluster, kind: str) -> list[DesiredVolume]:
    """The volumes of a component according to its spec."""
    return [_desired(template) for template in desired_templates(tc, kind)]


def designed_volumes(ctx: ClusterContext, kind: str) -> Sequence[DesiredVolume]:
    """Like `desired_volumes`, built once for each spec."""
    return ctx.designed((kind, "volumes"), lambda: tuple(desired_volumes(ctx.tc, kind)))


def designed_templates(ctx: ClusterContext, kind: str) -> Json:
    """A StatefulSet of the component's claim templates alone, built once for each spec."""
    built = lambda: {"spec": {"volumeClaimTemplates": desired_templates(ctx.tc, kind)}}  # noqa: E731
    return ctx.designed_tree((kind, "templates"), built)


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
    desired = designed_volumes(ctx, kind)
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
        if cached is None:
            return []
        claim = cached.decode_as(Claim)
        if not claim.is_bound or not claim.status.capacity.storage:
            return []
        requested = claim.spec.resources.requests.storage
        volumes.append(ActualVolume(name, claim.status.capacity.storage, storage_class_of(cached), requested))
    return volumes


def _unreadable_classes(ctx: ClusterContext, desired: Iterable[DesiredVolume]) -> frozenset[str]:
    """The named classes that do not exist or that the operator may not read."""
    lister = ctx.listers.storage_classes
    named = {volume.storage_class for volume in desired if volume.storage_class}
    return frozenset(name for name in named if lister is None or lister.get("", name) is None)
