"""What keeps the pod of a store from being restarted (lifecycle.md 7.4, F13)."""

from collections.abc import Sequence
from functools import partial

from dataplane.pd import Store
from kube.objects import Object
from member import labels
from member.context import ReconcileContext
from member.evidence import not_serving
from member.lifecycle.rolling import next_roll_poll
from member.outcome import Waiting
from member.stores.kind import StoreKind
from member.stores.reports import not_up


def serving_unseen(ctx: ReconcileContext, kind: StoreKind, pod: str) -> Waiting | None:
    """The wait for PD to list the store of a pod that serves: an old list of stores shows no leaders of it (I11)."""
    if not_serving(ctx, pod, partial(kind.ask, ctx, pod)):
        return None
    what = f"waiting for PD to list the store of pod {pod}, which serves, before restarting it"
    return Waiting("StoresUnknown", what, next_roll_poll(ctx, kind.name))


def others_not_up(
    ctx: ReconcileContext, kind: StoreKind, stores: Sequence[Store], store_id: int, pods: Sequence[Object]
) -> Waiting | None:
    """The wait for all other stores among `stores` to be Up, unless the user does not want that."""
    if ctx.tc.metadata.annotations.get(labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE) == "false":
        return None
    ill = not_up(ctx, kind, stores, store_id, pods)
    if not ill:
        return None
    way_out = f'the annotation {labels.TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE}: "false" skips this check'
    what = f"waiting for all stores to be Up before restarting {kind.title}'s pods: {ill}; {way_out}"
    return Waiting("StoresNotUp", what, next_roll_poll(ctx, kind.name))
