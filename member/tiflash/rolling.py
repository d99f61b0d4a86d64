"""Rolling restarts of TiFlash: one pod at a time, after the last one's store is running (lifecycle.md 7.5)."""

from apis import images
from apis.accessor import component
from dataplane.errors import DataPlaneError
from dataplane.tiflash import RUNNING
from kube.objects import Object
from member import api_clients
from member.context import ReconcileContext
from member.evidence import Spared
from member.lifecycle.rolling import Rolling, Silence
from member.outcome import NotDone
from member.stores.failover import ignored_pods
from member.stores.kind import TIFLASH_STORES
from member.stores.reports import store_of
from member.stores.rolling import not_back, others_away, others_not_up, serving_unseen, spare_unready, stores_unknown

_TELLS_ITS_STATUS = "v5.1.2"


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    if unmet := not_back(ctx, TIFLASH_STORES, pod):
        return unmet
    if not images.at_least(component(ctx.tc, "tiflash").version, _TELLS_ITS_STATUS):
        return ""
    try:
        status = api_clients.tiflash(ctx, pod.metadata.name).store_status()
    except DataPlaneError as error:
        return f"reports the status of its store: {error}"
    return "" if status == RUNNING else f"has a store that is {RUNNING} (it is {status})"


async def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    name = pod.metadata.name
    store = store_of(ctx, TIFLASH_STORES, name)
    if store is None:
        return serving_unseen(ctx, TIFLASH_STORES, name)
    stores, own = api_clients.pd(ctx).stores(), int(store.id)
    return others_not_up(ctx, TIFLASH_STORES, stores, own) or others_away(ctx, TIFLASH_STORES, stores, own)


async def _spare(ctx: ReconcileContext, pod: str) -> Spared | Silence | NotDone:
    return spare_unready(ctx, TIFLASH_STORES, pod)


ROLLING = Rolling(
    lambda ctx: stores_unknown(ctx, TIFLASH_STORES),
    _unmet_condition,
    _prepare,
    lambda ctx: ignored_pods(ctx, TIFLASH_STORES),
    spare=_spare,
    asks_others=True,
)
