"""How TiKV's pods are restarted: region leaders move away first (lifecycle.md 7.4)."""

from collections.abc import Sequence

from apis import predicates
from dataplane.pd import Store
from kube.objects import Object
from member import api_clients, labels
from member.context import ReconcileContext
from member.evidence import not_serving, pods_live
from member.lifecycle.rolling import Rolling, next_roll_poll
from member.naming import ordinal_of
from member.observed.pods import pods_of
from member.outcome import NotDone, Waiting
from member.ownership import not_understood
from member.polling import next_poll
from member.tikv.eviction import evict, missing_leaders, resume, store_of
from member.tikv.failover import ignored_pods
from member.tikv.stores import is_up, not_up, own_stores, restarting


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    if ctx.status.tikv.synced or _is_alone(ctx):
        return None
    return Waiting(
        "StoresUnknown",
        "waiting for PD to report the TiKV stores before restarting TiKV's pods",
        next_poll(ctx, "tikv"),
    )


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    store = store_of(ctx, pod.metadata.name)
    if store is None or not store.is_up:
        return "has a store that is Up"
    if any(str(each.id) == store.id for each in restarting(ctx, ctx.stores, [pod])):
        return "has reported to PD since its restart"
    return missing_leaders(store)


def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    if _is_alone(ctx):
        return None
    store = store_of(ctx, pod.metadata.name)
    if store is None:
        return _serving_unseen(ctx, pod.metadata.name)
    stores, own = api_clients.pd(ctx).stores(), int(store.id)
    if waiting := _others_not_up(ctx, stores, own, pods_of(ctx, "tikv")) or evict(ctx, pod, store):
        return waiting
    # it is restarted next: what the cache shows of the other pods may be old
    return _others_not_up(ctx, stores, own, pods_live(ctx, "tikv").pods)


def _serving_unseen(ctx: ReconcileContext, pod: str) -> Waiting | None:
    """The wait for PD to list the store of a pod that serves: an old list of stores shows no leaders of it (I11)."""
    if not_serving(ctx, pod):
        return None
    what = f"waiting for PD to list the store of pod {pod}, which serves, before restarting it"
    return Waiting("StoresUnknown", what, next_roll_poll(ctx, "tikv"))


def _prepare_unready(ctx: ReconcileContext, pod: str) -> NotDone | None:
    """A pod that is not Ready may serve all the same: it does not go while another store is away (F13)."""
    if _is_alone(ctx):
        return None
    if not ctx.status.tikv.synced:
        return not_understood(ctx.observations)
    stores = api_clients.pd(ctx).stores()
    up = next(filter(is_up, own_stores(ctx, stores, ordinal_of(pod))), None)
    return _others_not_up(ctx, stores, up.id, pods_live(ctx, "tikv").pods) if up else None


def _is_alone(ctx: ReconcileContext) -> bool:
    """Whether there is no other store that could take leaders (F19)."""
    tikv = ctx.status.tikv
    return len(tikv.stores) + len(tikv.peer_stores) < 2 and predicates.actual_replicas(ctx.tc, "tikv") < 2


def _others_not_up(
    ctx: ReconcileContext, stores: Sequence[Store], store_id: int, pods: Sequence[Object]
) -> Waiting | None:
    if ctx.tc.metadata.annotations.get(labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE) == "false":
        return None
    ill = not_up(ctx, stores, store_id, pods)
    if not ill:
        return None
    way_out = f'the annotation {labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE}: "false" skips this check'
    what = f"waiting for all stores to be Up before restarting TiKV's pods: {ill}; {way_out}"
    return Waiting("StoresNotUp", what, next_roll_poll(ctx, "tikv"))


ROLLING = Rolling(_blocked, _unmet_condition, _prepare, ignored_pods, resume=resume, prepare_unready=_prepare_unready)
