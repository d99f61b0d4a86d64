"""What the stages look at: claims and volumes of one cluster, and an object once more when it changed meanwhile."""

from collections.abc import Callable, Collection

import msgspec

from kube.errors import Conflict, NotFound
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUMES, Resource
from member import labels
from member.context import ClusterContext
from member.observed import claims
from member.observed.claims import Claim


class ClaimReference(msgspec.Struct, frozen=True):
    """The claim that a volume is for."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What the stages read of a volume's spec."""

    claim_ref: ClaimReference | None = None
    persistent_volume_reclaim_policy: str = ""


class Volume(msgspec.Struct, frozen=True):
    """A PersistentVolume, as far as the stages read it."""

    spec: VolumeSpec


def claims_of_cluster(ctx: ClusterContext, components: Collection[str]) -> list[Object]:
    """The cached claims of some components, by name."""
    return [claim for claim in claims.claims_of_cluster(ctx) if claim.metadata.labels[labels.COMPONENT] in components]


def volume_of(ctx: ClusterContext, claim: Object) -> Object | None:
    """The volume of a bound claim; None when the API server has none of that name, or it is another claim's.

    Only volumes that carry our labels are cached, so one that does not yet is read live: once, since it is labelled
    then. Raises ApiError, TransportError.
    """
    name = claim.decode_as(Claim).spec.volume_name
    volume = cached_volume(ctx, name) or ctx.deps.client.find(PERSISTENT_VOLUMES, name)
    return volume if volume is not None and is_for(volume, claim) else None


def cached_volume(ctx: ClusterContext, name: str) -> Object | None:
    """A volume that carries our labels, as far as the cache shows it."""
    lister = ctx.listers.persistent_volumes
    return lister.get("", name) if lister else None


def is_named_after(volume: str, claim: Object) -> bool:
    """Whether a volume has the name that provisioners make of the claim's UID: then it is for no other claim."""
    return volume == f"pvc-{claim.metadata.uid}"


def is_for(volume: Object, claim: Object) -> bool:
    """Whether a volume is bound to a claim."""
    reference = volume.decode_as(Volume).spec.claim_ref
    return reference is not None and reference.uid == claim.metadata.uid


def retry_on_conflict(
    ctx: ClusterContext, resource: Resource, cached: Object, write: Callable[[Object], Object | None]
) -> Object | None:
    """Decide and write; when the object has changed since it was cached, do so once more on a live read (F3).

    What `write` gives, or None when the object is gone or is another one by now. Raises Conflict when it changes all
    the time, other ApiErrors, TransportError.
    """
    meta = cached.metadata
    try:
        return write(cached)
    except (Conflict, NotFound):
        fresh = ctx.deps.client.find(resource, meta.name, meta.namespace)
        return write(fresh) if fresh is not None and fresh.metadata.uid == meta.uid else None
