"""`replace-volume` on a store's pod: the store leaves PD, then pod and volumes are recreated (lifecycle.md 13)."""

from collections.abc import Sequence

from apis import predicates
from dataplane.errors import Conflict
from dataplane.pd import OFFLINE, UP, LiveStore, PDClient, Store
from kube.objects import Object
from member import api_clients, labels
from member.actions import RemoveStore
from member.commands import (
    REPLACING,
    RETRY_BUSY,
    RETRY_DRAINING,
    begin,
    cancel,
    component_busy,
    is_cancelled,
    is_withdrawn,
    restart_without_volumes,
    store_label,
)
from member.context import ReconcileContext
from member.evidence import no_store, pods_live, store_gone
from member.naming import ordinal_of
from member.observed.command_annotations import Command
from member.outcome import Failed, Outcome, Refused, Waiting
from member.stores import evictions
from member.stores.kind import StoreKind, shortage
from member.stores.reports import is_up, not_up, own_stores


async def replace_volume(kind: StoreKind, ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """One step of a replacement. Raises DataPlaneError, ApiError, TransportError, LeaseExpired."""
    if is_cancelled(ctx, pod, command):
        return await cancel(ctx, pod)
    name = pod.metadata.name
    if busy := component_busy(ctx, name, "pd"):
        return busy
    pd = api_clients.pd(ctx)
    stores = pd.stores()
    own = own_stores(ctx, kind, stores, ordinal_of(name))
    if len(own) > 1 or any(not store.complete for store in own):
        return Failed("StoreUnknown", f"PD does not report exactly one store for pod {name}")
    if own:
        waiting = _may_leave(kind, ctx, pd, own[0], stores, pod=name)
        return waiting or await _take_offline(ctx, pd, pod, command, own[0])
    return await _without_store(kind, ctx, pd, pod, command)


async def _without_store(
    kind: StoreKind, ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command
) -> Outcome:
    """The remaining steps after the store of a pod has left PD."""
    name = pod.metadata.name
    label = store_label(ctx, pod)
    if not label.isdecimal():
        lacks = f"pod {name} has no store, and neither it nor its claim has a label {labels.STORE_ID}"
        return Refused("StoreUnknown", lacks)
    gone = store_gone(ctx, int(label), "") and no_store(ctx, kind.name, name)
    if gone is None:
        return Waiting(REPLACING, f"waiting until store {label} of pod {name} is Tombstone", RETRY_DRAINING)
    if kind.leaders and int(label) in pd.evicting_stores():
        await evictions.end(ctx, pd, int(label))
    return await restart_without_volumes(ctx, pod, command, gone)


def _may_leave(
    kind: StoreKind, ctx: ReconcileContext, pd: PDClient, store: Store, stores: Sequence[Store], *, pod: str
) -> Outcome | None:
    """Why a store cannot be taken offline now, e.g. because it already is (I5); None if it can."""
    if store.state_name == OFFLINE:
        what = f"store {store.id} of pod {pod} is Offline: {store.region_count} regions left to move"
        return Waiting(REPLACING, what, RETRY_DRAINING)
    if store.state_name != UP:
        return Failed(
            "StoreNotUp", f"store {store.id} of pod {pod} is {store.state_name}; it can be replaced only while it is Up"
        )
    if ill := not_up(ctx, kind, stores, store.id, pods_live(ctx, kind.name).pods):
        return Waiting(
            "StoresNotUp",
            f"waiting for all stores to be Up before removing store {store.id} of pod {pod}: {ill}",
            RETRY_BUSY,
        )
    if not predicates.all_members_ready(ctx.tc, kind.name):
        return Waiting(
            "StoresNotUp",
            f"waiting for every {kind.title} pod to have its store before removing store {store.id} of pod {pod}",
            RETRY_BUSY,
        )
    return _missed(kind, pd, store, [each for each in stores if each.id != store.id and kind.has(each)], pod)


def _missed(kind: StoreKind, pd: PDClient, store: Store, others: Sequence[Store], pod: str) -> Refused | None:
    """Why the other stores cannot hold what the store of a pod holds; None if they can (I5, lifecycle.md 8.5)."""
    up, needs = sum(map(is_up, others)), kind.needs(pd)
    without, way_out = f"without store {store.id} of pod {pod}", f"raise spec.{kind.name}.replicas first"
    if up < needs.stores:
        too_few = f"{without}, only {up} {kind.title} stores would be Up, but {needs.kept}; {way_out}"
        return Refused("TooFewStores", too_few, RETRY_BUSY)
    if needs.stores and (lacking := shortage([store], others, kind.placement(pd))):
        return Refused("StoresLackRoom", f"{without}, {lacking}; {way_out}", RETRY_BUSY)
    return None


async def _take_offline(
    ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command, store: LiveStore
) -> Outcome:
    if is_withdrawn(command):
        return await cancel(ctx, pod)
    begun = await begin(ctx, pod, command)
    if isinstance(begun, Waiting):
        return begun
    name = pod.metadata.name
    try:
        await RemoveStore(pd, store, begun)
    except Conflict as error:
        return Refused("TooFewStores", f"PD refused to remove store {store.id} of pod {name}: {error}", RETRY_BUSY)
    return Waiting(
        REPLACING, f"removing store {store.id} of pod {name}: moving its regions to other stores", RETRY_DRAINING
    )
