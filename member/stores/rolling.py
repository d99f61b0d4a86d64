"""What keeps the pod of a store from being restarted (lifecycle.md 7.4, F13).

A store that is Up does not mean that its regions are whole: after a long absence its peers wait for snapshots, and do
not vote. A restart of another store would then leave regions without a quorum. They lose no data, but do not serve
until it is back. PD copies no peer away from a store that is Up, so the state may last, and the wait has a limit.
"""

from collections.abc import Sequence
from functools import partial

from dataplane.errors import ApiError, Unavailable
from dataplane.pd import PDClient, Store
from dataplane.regions import Region
from kube.actions import Emit
from kube.events import WARNING
from kube.objects import Object
from member import api_clients, labels
from member.context import ReconcileContext
from member.evidence import Spared, not_serving, pods_live, spared
from member.lifecycle.roll import next_roll_poll
from member.lifecycle.rolling import Silence
from member.naming import ordinal_of
from member.observed.pods import pods_of
from member.outcome import NotDone, Waiting
from member.ownership import not_understood, stores_by_pod
from member.polling import next_poll
from member.stores.kind import StoreKind
from member.stores.reports import is_up, not_up, own_stores, restarting, store_of
from ports import duration
from ports.foreign_text import shortened
from ports.transport import AnswerRefused, TlsError

_LIMIT = 600.0
"""Seconds: a snapshot of a region takes seconds, and TiKV applies several at a time."""

_NEEDED, _NEEDED_AGAIN = "regions need a store", "regions need an evicted store"


def stores_unknown(ctx: ReconcileContext, kind: StoreKind) -> Waiting | None:
    """The wait for PD to report the stores; until then no pod of the kind is restarted (F7)."""
    if kind.status_in(ctx).synced:
        return None
    what = f"waiting for PD to report the {kind.title} stores before restarting {kind.title}'s pods"
    return Waiting("StoresUnknown", what, next_poll(ctx, kind.name))


def not_back(ctx: ReconcileContext, kind: StoreKind, pod: Object) -> str:
    """The condition that the store of a restarted pod does not meet yet; empty if it serves again."""
    store = store_of(ctx, kind, pod.metadata.name)
    if store is None or not store.is_up:
        return "has a store that is Up"
    own = [each for each in ctx.stores if str(each.id) == store.id]
    return "has reported to PD since its restart" if any(restarting(ctx, kind, own, [pod])) else ""


def spare_unready(ctx: ReconcileContext, kind: StoreKind, pod: str) -> Spared | Silence | NotDone:
    """Spare an unready pod if PD can do without it; a pod that serves stays while another store is away (F13).

    Raises DataPlaneError.
    """
    if not kind.status_in(ctx).synced:
        what = f"PD does not report the {kind.title} stores"
        return not_understood(ctx.observations) or Silence("StoresUnknown", what)
    stores = api_clients.pd(ctx).stores()
    up = next(filter(is_up, own_stores(ctx, kind, stores, ordinal_of(pod))), None)
    needed = others_away(ctx, kind, stores, up.id) if up else None
    return needed or spared(pod, "all other stores serve" if up else "PD lists no store of it that is Up")


def serving_unseen(ctx: ReconcileContext, kind: StoreKind, pod: str) -> Waiting | None:
    """The wait for PD to list the store of a pod that serves: an outdated list does not show its leaders (I11)."""
    if not_serving(ctx, kind.name, pod, partial(kind.ask, ctx, pod)):
        return None
    what = f"waiting for PD to list the store of pod {pod}, which serves, before restarting it"
    return Waiting("StoresUnknown", what, next_roll_poll(ctx, kind.name))


def others_away(ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], store_id: int) -> Waiting | None:
    """The wait for all other stores right before a pod restarts; None if all serve, or if the user skips the check."""
    ill = away(ctx, kind, stores, store_id) if _are_checked(ctx) else ""
    return _wait_for_others(ctx, kind, ill) if ill else None


def away(ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], besides: int) -> str:
    """The stores that do not serve, like `not_up`, with a live read of the pods: the cache may be outdated.

    PD notices a loss after 20 s, Kubernetes after 50 s. So the operator also asks each store that both consider healthy
    (F13).
    """
    pods = pods_live(ctx, kind.name).pods
    return not_up(ctx, kind, stores, besides, pods) or _silent(ctx, kind, stores, besides, pods)


def others_not_up(ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], store_id: int) -> Waiting | None:
    """The wait for all other stores to be Up, with their pods from the cache, unless the user skips the check."""
    ill = not_up(ctx, kind, stores, store_id, pods_of(ctx, kind.name)) if _are_checked(ctx) else ""
    return _wait_for_others(ctx, kind, ill) if ill else None


def _silent(
    ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], besides: int, pods: Sequence[Object]
) -> str:
    """The first store that PD reports as Up and that does not answer, in words; empty if all answer.

    A new heartbeat since the first unanswered request shows that only the operator cannot reach the store.
    """
    silent, owned = ctx.memory.silent_stores, stores_by_pod(ctx.tc, kind.name, stores)
    for pod in (each.metadata.name for each in pods if not each.metadata.deletion_timestamp):
        store = next(filter(is_up, owned.get(ordinal_of(pod), ())), None)
        if store is None or store.id == besides:
            continue
        if _answers(ctx, kind, pod):
            silent.pop(store.id, None)
        elif silent.setdefault(store.id, store.last_heartbeat) == store.last_heartbeat:
            return f"store {store.id} ({pod}) does not answer"
    return ""


def _answers(ctx: ReconcileContext, kind: StoreKind, pod: str) -> bool:
    """True if the server of a pod responds, even with a rejection. Raises BadTlsMaterial."""
    try:
        kind.ask(ctx, pod)
    except Unavailable as error:
        return error.cause is None or isinstance(error.cause, TlsError)
    except ApiError:
        pass
    return True


def _are_checked(ctx: ReconcileContext) -> bool:
    return ctx.tc.metadata.annotations.get(labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE) != "false"


def _wait_for_others(ctx: ReconcileContext, kind: StoreKind, ill: str) -> Waiting:
    way_out = f'the annotation {labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE}: "false" skips this check'
    what = f"waiting for all stores to be Up before restarting {kind.title}'s pods: {ill}; {way_out}"
    return Waiting("StoresNotUp", what, next_roll_poll(ctx, kind.name))


async def quorum_wait(
    ctx: ReconcileContext, pd: PDClient, pod: Object, store: int, *, restarts: bool
) -> Waiting | None:
    """The wait while regions need `store`, the store of `pod`, for their quorum; None if none does, or after the limit.

    `restarts` is False before the leaders move away, and True right before the restart: each has the whole limit, and
    an event reports a restart after it. Raises DataPlaneError.
    """
    limit, doubt = _limit(ctx)
    if limit <= 0 or not _are_checked(ctx):
        return None
    what, watches = _needing(pd, store), ctx.memory.stopwatches
    watch, uid = (_NEEDED_AGAIN if restarts else _NEEDED), pod.metadata.uid
    if not what:
        watches.forget(watch, uid)
        return None
    if watches.look(watch, uid, ctx.deps.clock).seconds >= limit:
        if restarts:
            sentence = f"restarting pod {pod.metadata.name} after a wait of {limit:.0f} s, although {what}"
            await Emit(ctx.owner, WARNING, "RegionQuorumTimeout", sentence)
        return None
    step = f"waiting at most {limit:.0f} s until no region needs pod {pod.metadata.name} (store {store}) for its quorum"
    way_out = f"the annotation {labels.TIKV_WAIT_FOR_REGION_QUORUM} of the TidbCluster sets another limit{doubt}"
    return Waiting("RegionsNotWhole", f"{step}: {what}", next_roll_poll(ctx, "tikv"), step=step, way_out=way_out)


def _needing(pd: PDClient, store: int) -> str:
    """The regions that need a store, in words; empty if none does. A list that is too long may contain some."""
    try:
        regions = pd.regions_behind()
    except Unavailable as error:
        if not isinstance(error.cause, AnswerRefused):
            raise
        return f"PD lists too many regions with peers that are down or pending: {error}"
    return _sentence([region for region in regions if region.needs(store)], store)


def _sentence(regions: Sequence[Region], store: int) -> str:
    if not regions:
        return ""
    behind = sorted(frozenset().union(*(region.stores_behind() for region in regions)))
    more = f" (and {len(regions) - 1} more)" if len(regions) > 1 else ""
    on = ", ".join(f"store {each}" for each in behind[:3]) + (", ..." if len(behind) > 3 else "")
    return f"the quorum of region {regions[0].id}{more} needs store {store}: peers on {on} are down or pending"


def _limit(ctx: ReconcileContext) -> tuple[float, str]:
    """The seconds that a wait may last, and the end of a sentence about an annotation that has no duration."""
    text = ctx.tc.metadata.annotations.get(labels.TIKV_WAIT_FOR_REGION_QUORUM, "")
    try:
        return (duration.seconds(text) if text else _LIMIT), ""
    except ValueError:
        return _LIMIT, f"; its value {shortened(text)!r} is not a duration such as 1h"
