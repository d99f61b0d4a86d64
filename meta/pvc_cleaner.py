"""The stage `pvc_cleaner`: the scheduler's locks, and the claims that scale-ins left behind (lifecycle.md 11.2, 8.5).

A claim is deleted only with spec.enablePVReclaim, and only if live reads in this reconcile prove that it is unused: its
pod is gone, the StatefulSet lacks its ordinal, PD lacks its member or store (I1, I2, F5).
"""

from collections.abc import Collection, Iterable
from itertools import chain
from operator import attrgetter

from apis import predicates
from apis.component_statuses import PDStatus, TiFlashStatus, TiKVStatus
from apis.components import component_names
from kube.actions import Emit
from kube.deletion import Destroyer, LiveObject
from kube.events import NORMAL
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from member import labels
from member.actions import Delete
from member.apply.writes import require_owner
from member.context import ClusterContext, DMContext, ReconcileContext
from member.evidence import (
    Evidence,
    look_up,
    master_gone,
    member_gone,
    no_store,
    shown_by,
    store_gone,
    worker_gone,
)
from member.naming import member_name, ordinal_of
from member.objects.stateful_set import ordinals_of
from member.outcome import Done, Outcome
from meta.apart import conclude_all
from meta.deferred_claims import Reclaim, Unlock, Unmark, deferred_step, lock_step
from meta.metadata import DesiredMetadata, apply_metadata
from meta.reading import claims_of_cluster, retry_on_conflict, volume_of
from meta.volumes import set_policy


async def act(ctx: ClusterContext) -> Outcome:
    """Take the next step for each claim. Raises OwnerGone, Conflict, other ApiErrors, TransportError,
    DataPlaneError.
    """
    if ctx.tc.spec.paused:
        return Done("paused")
    holding = component_names(attrgetter("claims.hold_data"), ctx.tc.kind)
    deferred = component_names(attrgetter("claims.deferred"), ctx.tc.kind)
    claims = claims_of_cluster(ctx, {*holding, *deferred})
    # most claims have neither mark
    locked = _marked(claims, labels.POD_SCHEDULING, holding)
    left = _marked(claims, labels.PVC_DEFER_DELETING, deferred)
    await conclude_all(chain((_unlock(ctx, claim) for claim in locked), (_go_on(ctx, claim) for claim in left)))
    return Done()


def _marked(claims: Iterable[Object], annotation: str, components: Collection[str]) -> list[Object]:
    """The claims of the components with an annotation."""
    marked = [claim for claim in claims if annotation in claim.metadata.annotations]
    return [claim for claim in marked if claim.metadata.labels[labels.COMPONENT] in components]


async def _unlock(ctx: ClusterContext, claim: Object) -> None:
    if isinstance(lock_step(claim, _pod(ctx, claim)), Unlock):
        await _remove_annotations(ctx, claim, labels.POD_SCHEDULING)


async def _go_on(ctx: ClusterContext, claim: Object) -> None:
    match deferred_step(ctx.tc, claim, _pod(ctx, claim)):
        case Unmark():
            await _remove_annotations(ctx, claim, labels.PVC_DEFER_DELETING, labels.SCALE_IN_TIME)
        case Reclaim():
            await _reclaim(ctx, claim)


def _pod(ctx: ClusterContext, claim: Object) -> Object | None:
    """The cached pod that a claim names."""
    name = claim.metadata.annotations.get(labels.POD_NAME)
    return ctx.listers.pods.get(ctx.namespace, name) if name else None


async def _remove_annotations(ctx: ClusterContext, claim: Object, *annotations: str) -> None:
    metadata = DesiredMetadata(without=annotations)
    await retry_on_conflict(
        ctx,
        PERSISTENT_VOLUME_CLAIMS,
        claim,
        lambda there: apply_metadata(PERSISTENT_VOLUME_CLAIMS, there, metadata),
    )


async def _reclaim(ctx: ClusterContext, claim: Object) -> None:
    """Delete a claim and its volume if live reads confirm the decision; otherwise the next reconcile decides again."""
    if ctx.listers.persistent_volumes is None:
        return
    require_owner(ctx)
    unwanted = _not_wanted(ctx, claim)
    seen = _unchanged(ctx, claim) if unwanted else None
    volume = volume_of(ctx, claim) if seen else None
    if unwanted is None or seen is None or volume is None:
        return
    await set_policy(ctx, claim, volume, "Delete")
    await Delete(seen, unwanted)
    what = f"delete PersistentVolumeClaim {claim.metadata.name} in {ctx.tc.kind} {ctx.name} successful"
    await Emit(ctx.owner, NORMAL, "SuccessfulDelete", what)


def _not_wanted(ctx: ClusterContext, claim: Object) -> Evidence | None:
    """Evidence from live reads that a claim's pod neither exists nor is desired, and that PD does not know it; else
    None.
    """
    pod, kind = claim.metadata.annotations[labels.POD_NAME], claim.metadata.labels[labels.COMPONENT]
    gone = look_up(ctx, PODS, pod, ctx.namespace)
    if isinstance(gone, LiveObject):
        return None
    stateful_set = look_up(ctx, STATEFUL_SETS, member_name(ctx.tc, kind), ctx.namespace)
    if isinstance(stateful_set, Evidence) or ordinal_of(pod) in ordinals_of(stateful_set.object.decode()).ordinals:
        return None
    forgotten = _forgotten(ctx, claim, pod, kind)
    return forgotten and gone & forgotten & shown_by(stateful_set, f"the StatefulSet has no pod {pod}")


def _forgotten(ctx: ClusterContext, claim: Object, pod: str, kind: str) -> Evidence | None:
    """Evidence from PD that it has no member or store of a pod, nor the store in the claim's label; else None.

    The labelled store is read separately, because the list may be older than it.
    """
    if isinstance(ctx, DMContext):
        return master_gone(ctx, pod) if kind == "dm-master" else worker_gone(ctx, pod)
    assert isinstance(ctx, ReconcileContext)
    match predicates.status_of(ctx.tc, kind):
        case PDStatus():
            return member_gone(ctx, pod)
        case TiKVStatus() | TiFlashStatus():
            store = claim.metadata.labels.get(labels.STORE_ID, "")
            absent = no_store(ctx, kind, pod)
            return absent and store_gone(ctx, int(store), "") if store.isdecimal() else absent
    return None


def _unchanged(ctx: ClusterContext, claim: Object) -> LiveObject | None:
    """The live claim, if it is still the cached one."""
    seen = Destroyer(ctx.deps.client).observe(PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, ctx.namespace)
    if seen is None or seen.object.metadata.resource_version != claim.metadata.resource_version:
        return None
    return seen if seen.object.metadata.uid == claim.metadata.uid else None
