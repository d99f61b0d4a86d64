"""Volume claims as decisions read them, and those of pods. Reads only."""

from collections.abc import Mapping

import msgspec

from apis.data_volumes import cluster_id_of, clusters_of_claim, is_claim_of
from kube.objects import Object
from member import labels
from member.context import ClusterContext
from member.naming import pvc_name

BOUND = "Bound"
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


class PodWithVolumes(msgspec.Struct, frozen=True):
    """A pod, as far as its volumes go."""

    spec: PodVolumes


class Storage(msgspec.Struct, frozen=True):
    """Requested or present storage, as a quantity; empty when unknown."""

    storage: str = ""


class Requests(msgspec.Struct, frozen=True):
    """What a claim asks for."""

    requests: Storage = msgspec.field(default_factory=Storage)


class Given(msgspec.Struct, frozen=True):
    """A field of which only matters whether it is given."""


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What a claim asks for, out of what its volume is to be filled, or chosen, and the volume that it got."""

    volume_name: str = ""
    data_source: Given | None = None
    data_source_ref: Given | None = None
    selector: Given | None = None
    storage_class_name: str = ""
    resources: Requests = msgspec.field(default_factory=Requests)
    volume_attributes_class_name: str = ""


class ModifyVolumeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Which volume attributes class a claim is about to get, and how that goes; empty while it is not."""

    target_volume_attributes_class_name: str = ""
    status: str = ""


class ClaimCondition(msgspec.Struct, frozen=True):
    """What Kubernetes or a storage driver says of a claim."""

    type: str = ""
    status: str = ""
    message: str = ""


class ClaimStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How far a claim has come."""

    phase: str = ""
    capacity: Storage = msgspec.field(default_factory=Storage)
    allocated_resources: Storage = msgspec.field(default_factory=Storage)
    allocated_resource_statuses: Storage = msgspec.field(default_factory=Storage)
    modify_volume_status: ModifyVolumeStatus = msgspec.field(default_factory=ModifyVolumeStatus)
    conditions: tuple[ClaimCondition, ...] = ()


class Claim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim, as far as decisions read it."""

    spec: ClaimSpec
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)

    @property
    def is_bound(self) -> bool:
        """Whether the claim has its volume."""
        return self.status.phase == BOUND and bool(self.spec.volume_name)

    @property
    def refused_size(self) -> str:
        """The size that the storage driver calls infeasible (KEP-1790); empty where it has refused none."""
        status = self.status
        return status.allocated_resources.storage if status.allocated_resource_statuses.storage in _INFEASIBLE else ""


def awaits_data(claim: Object) -> bool:
    """Whether the volume that a claim is to get comes with data, as where a backup tool has restored the claim.

    None of our templates names a source of data or a selector. Ids are those of a member or store that has data.
    """
    asked, labelled = claim.decode_as(Claim).spec, claim.metadata.labels
    chosen = any(each is not None for each in (asked.data_source, asked.data_source_ref, asked.selector))
    return chosen or labels.MEMBER_ID in labelled or labels.STORE_ID in labelled


def claim_names(pod: Object) -> Mapping[str, str]:
    """The claims that a pod mounts: the name of the claim by that of the volume in the pod."""
    volumes = pod.decode_as(PodWithVolumes).spec.volumes
    return {each.name: each.persistent_volume_claim.claim_name for each in volumes if each.persistent_volume_claim}


def own_claims(pod: Object) -> list[str]:
    """The names of the claims that were made for a pod from its templates; what else it mounts is the user's."""
    name = pod.metadata.name
    return [claim for volume, claim in claim_names(pod).items() if claim == pvc_name(volume, name)]


def claims_of(ctx: ClusterContext, pod: Object) -> list[Object]:
    """The cached claims that a pod mounts; one that the cache lacks is left out."""
    found = (ctx.listers.persistent_volume_claims.get(ctx.namespace, name) for name in claim_names(pod).values())
    return [claim for claim in found if claim is not None]


def claims_of_cluster(ctx: ClusterContext) -> list[Object]:
    """The cached claims of the cluster's pods, by name."""
    found = ctx.listers.persistent_volume_claims.list(ctx.namespace, labels.cluster_labels(ctx.tc))
    own = (claim for claim in found if is_claim_of(ctx.name, claim.metadata.name, claim.metadata.labels))
    return sorted(own, key=lambda claim: claim.metadata.name)


def claimed_ids(ctx: ClusterContext) -> frozenset[str]:
    """The ids of PD clusters to which the data in the cached claims of the TidbCluster belongs (F40).

    Not looked for while the status knows the id.
    """
    return frozenset() if ctx.tc.status.cluster_id else labelled_ids(ctx)


def labelled_ids(ctx: ClusterContext) -> frozenset[str]:
    """The same, whatever the status says."""
    # by name alone: they may be from before the cluster got another instance name
    any_instance = {labels.NAME: ctx.tc.LABELLED_NAME, labels.MANAGED_BY: labels.TIDB_OPERATOR}
    named = ctx.listers.persistent_volume_claims.by_index(_clusters, f"{ctx.namespace}/{ctx.name}")
    own = (claim.metadata for claim in named if any_instance.items() <= claim.metadata.labels.items())
    found = (cluster_id_of(meta.labels, meta.annotations) for meta in own)
    return frozenset(found) - {""}


def _clusters(claim: Object) -> list[str]:
    """The clusters that a claim may belong to, as `namespace/name`."""
    meta = claim.metadata
    return [f"{meta.namespace}/{cluster}" for cluster in clusters_of_claim(meta.name, meta.labels)]
