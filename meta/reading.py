"""Reads of the stages: claims and volumes of a cluster, and a live read after a conflict."""

from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from kube.actions import Decision
from kube.errors import Conflict, NotFound
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUMES, Resource
from member import labels
from member.context import ClusterContext
from member.observed import claims
from member.observed.claims import Claim

T = TypeVar("T")


class ClaimReference(msgspec.Struct, frozen=True):
    """The claim that a volume is bound to."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a volume's spec that the stages read."""

    claim_ref: ClaimReference | None = None
    persistent_volume_reclaim_policy: str = ""


class Volume(msgspec.Struct, frozen=True):
    """The fields of a PersistentVolume that the stages read."""

    spec: VolumeSpec


def claims_of_cluster(ctx: ClusterContext, components: Collection[str]) -> list[Object]:
    """The cached claims of the given components, by name."""
    return [claim for claim in claims.claims_of_cluster(ctx) if claim.metadata.labels[labels.COMPONENT] in components]


def volume_of(ctx: ClusterContext, claim: Object) -> Object | None:
    """The volume of a bound claim; None if it does not exist or belongs to another claim.

    The cache contains only volumes with the operator's labels. One without them is read live, once, because it gets
    labels then. Raises ApiError, TransportError.
    """
    name = claim.decode_as(Claim).spec.volume_name
    volume = cached_volume(ctx, name) or ctx.deps.client.find(PERSISTENT_VOLUMES, name)
    return volume if volume is not None and is_for(volume, claim) else None


def cached_volume(ctx: ClusterContext, name: str) -> Object | None:
    """A volume with the operator's labels, if it is cached."""
    lister = ctx.listers.persistent_volumes
    return lister.get("", name) if lister else None


def is_named_after(volume: str, claim: Object) -> bool:
    """True if a volume has the name that provisioners derive from the claim's UID, so that it belongs to no other
    claim.
    """
    return volume == f"pvc-{claim.metadata.uid}"


def is_for(volume: Object, claim: Object) -> bool:
    """True if a volume is bound to a claim."""
    reference = volume.decode_as(Volume).spec.claim_ref
    return reference is not None and reference.uid == claim.metadata.uid


async def retry_on_conflict(
    ctx: ClusterContext, resource: Resource, cached: Object, write: Callable[[Object], Decision[T]]
) -> T | None:
    """Decide and write; after a conflict, once more on a live read (F3).

    Returns the result of `write`, or None if the object is gone or was recreated. Raises Conflict after the second try,
    other ApiErrors, TransportError.
    """
    meta = cached.metadata
    try:
        return await write(cached)
    except (Conflict, NotFound):
        fresh = ctx.deps.client.find(resource, meta.name, meta.namespace)
        return await write(fresh) if fresh is not None and fresh.metadata.uid == meta.uid else None
