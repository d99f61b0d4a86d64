"""How TiFlash's pods are restarted: one at a time, the next when the store of the last one runs (lifecycle.md 7.5)."""

from apis import images
from apis.accessor import component
from dataplane.errors import DataPlaneError
from dataplane.tiflash import RUNNING
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
from member.tiflash.kind import KIND

_TELLS_ITS_STATUS = "v5.1.2"


def _blocked(ctx: ReconcileContext) -> Waiting | None:
    if ctx.status.tiflash.synced:
        return None
    what = "waiting for PD to report the TiFlash stores before restarting TiFlash's pods"
    return Waiting("StoresUnknown", what, next_poll(ctx, "tiflash"))


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    name = pod.metadata.name
    store = store_of(ctx, KIND, name)
    if store is None or not store.is_up:
        return "has a store that is Up"
    if any(str(each.id) == store.id for each in restarting(ctx, KIND, ctx.stores, [pod])):
        return "has reported to PD since its restart"
    if not images.at_least(component(ctx.tc, "tiflash").version, _TELLS_ITS_STATUS):
        return ""
    try:
        status = api_clients.tiflash(ctx, name).store_status()
    except DataPlaneError as error:
        return f"tells the status of its store: {error}"
    return "" if status == RUNNING else f"has a store that is {RUNNING} (it is {status})"


def _prepare(ctx: ReconcileContext, pod: Object) -> NotDone | None:
    name = pod.metadata.name
    store = store_of(ctx, KIND, name)
    if store is None:
        return serving_unseen(ctx, KIND, name)
    stores, own = api_clients.pd(ctx).stores(), int(store.id)
    waiting = others_not_up(ctx, KIND, stores, own, pods_of(ctx, "tiflash"))
    # it is restarted next: what the cache shows of the other pods may be old
    return waiting or others_not_up(ctx, KIND, stores, own, pods_live(ctx, "tiflash").pods)


def _prepare_unready(ctx: ReconcileContext, pod: str) -> NotDone | None:
    """A pod that is not Ready may serve all the same: it does not go while another store is away (F13)."""
    if not ctx.status.tiflash.synced:
        return not_understood(ctx.observations)
    stores = api_clients.pd(ctx).stores()
    up = next(filter(is_up, own_stores(ctx, KIND, stores, ordinal_of(pod))), None)
    return others_not_up(ctx, KIND, stores, up.id, pods_live(ctx, "tiflash").pods) if up else None


ROLLING = Rolling(
    _blocked,
    _unmet_condition,
    _prepare,
    lambda ctx: ignored_pods(ctx, KIND),
    prepare_unready=_prepare_unready,
)
