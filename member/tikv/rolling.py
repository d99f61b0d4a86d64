"""Rolling restarts of TiKV: region leaders move away first (lifecycle.md 7.4)."""

from apis import predicates
from kube.objects import Object
from member import api_clients
from member.context import ReconcileContext
from member.evidence import Spared, spared
from member.lifecycle.rolling import Rolling, Silence
from member.outcome import NotDone, Waiting
from member.stores.failover import ignored_pods
from member.stores.reports import store_of
from member.stores.restarting import (
    not_back,
    others_away,
    others_not_up,
    serving_unseen,
    spare_unready,
    stores_unknown,
)
from member.tikv.eviction import evict, missing_leaders, resume
from member.tikv.kind import KIND


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    return None if _is_alone(ctx) else stores_unknown(ctx, KIND)


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    store = store_of(ctx, KIND, pod.metadata.name)
    return not_back(ctx, KIND, pod) or (missing_leaders(store) if store else "")


async def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    if _is_alone(ctx):
        return None
    store = store_of(ctx, KIND, pod.metadata.name)
    if store is None:
        return serving_unseen(ctx, KIND, pod.metadata.name)
    stores, own = api_clients.pd(ctx).stores(), int(store.id)
    if waiting := others_not_up(ctx, KIND, stores, own) or await evict(ctx, pod, store):
        return waiting
    return others_away(ctx, KIND, stores, own)


def _is_alone(ctx: ReconcileContext) -> bool:
    """True if no other store could take leaders (F19)."""
    tikv = ctx.status.tikv
    return len(tikv.stores) + len(tikv.peer_stores) < 2 and predicates.actual_replicas(ctx.tc, "tikv") < 2


async def _spare(ctx: ReconcileContext, pod: str) -> Spared | Silence | NotDone:
    return spared(pod, "it is alone") if _is_alone(ctx) else spare_unready(ctx, KIND, pod)


ROLLING = Rolling(
    _blocked,
    _unmet_condition,
    _prepare,
    lambda ctx: ignored_pods(ctx, KIND),
    resume=resume,
    spare=_spare,
)
