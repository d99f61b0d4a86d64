"""How TiKV's pods are restarted: region leaders move away first (lifecycle.md 7.4)."""

from apis import predicates
from kube.objects import Object
from member import api_clients
from member.context import ReconcileContext
from member.evidence import pods_live
from member.lifecycle.rolling import Rolling
from member.naming import ordinal_of
from member.observed.pods import pods_of
from member.outcome import NotDone, Waiting
from member.ownership import not_understood
from member.polling import next_poll
from member.stores.failover import ignored_pods
from member.stores.reports import is_up, own_stores, restarting, store_of
from member.stores.restarting import others_not_up, serving_unseen
from member.tikv.eviction import evict, missing_leaders, resume
from member.tikv.kind import KIND


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    if ctx.status.tikv.synced or _is_alone(ctx):
        return None
    return Waiting(
        "StoresUnknown",
        "waiting for PD to report the TiKV stores before restarting TiKV's pods",
        next_poll(ctx, "tikv"),
    )


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    store = store_of(ctx, KIND, pod.metadata.name)
    if store is None or not store.is_up:
        return "has a store that is Up"
    if any(str(each.id) == store.id for each in restarting(ctx, KIND, ctx.stores, [pod])):
        return "has reported to PD since its restart"
    return missing_leaders(store)


def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    if _is_alone(ctx):
        return None
    store = store_of(ctx, KIND, pod.metadata.name)
    if store is None:
        return serving_unseen(ctx, KIND, pod.metadata.name)
    stores, own = api_clients.pd(ctx).stores(), int(store.id)
    if waiting := others_not_up(ctx, KIND, stores, own, pods_of(ctx, "tikv")) or evict(ctx, pod, store):
        return waiting
    # it is restarted next: what the cache shows of the other pods may be old
    return others_not_up(ctx, KIND, stores, own, pods_live(ctx, "tikv").pods)


def _prepare_unready(ctx: ReconcileContext, pod: str) -> NotDone | None:
    """A pod that is not Ready may serve all the same: it does not go while another store is away (F13)."""
    if _is_alone(ctx):
        return None
    if not ctx.status.tikv.synced:
        return not_understood(ctx.observations)
    stores = api_clients.pd(ctx).stores()
    up = next(filter(is_up, own_stores(ctx, KIND, stores, ordinal_of(pod))), None)
    return others_not_up(ctx, KIND, stores, up.id, pods_live(ctx, "tikv").pods) if up else None


def _is_alone(ctx: ReconcileContext) -> bool:
    """Whether there is no other store that could take leaders (F19)."""
    tikv = ctx.status.tikv
    return len(tikv.stores) + len(tikv.peer_stores) < 2 and predicates.actual_replicas(ctx.tc, "tikv") < 2


ROLLING = Rolling(
    _blocked,
    _unmet_condition,
    _prepare,
    lambda ctx: ignored_pods(ctx, KIND),
    resume=resume,
    prepare_unready=_prepare_unready,
)
