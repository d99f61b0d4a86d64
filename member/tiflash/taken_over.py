"""A scale-in that v1.6 had begun when it was stopped (lifecycle.md 8.6).

v1.6 notes on pods of TiKV alone that they leave. Of TiFlash its phase tells, until the status is written anew.
"""

from dataplane.pd import OFFLINE
from kube.objects import Json
from member.context import Held, ReconcileContext
from member.lifecycle import pod_removal
from member.lifecycle.own_changes import remembered
from member.naming import pod_name
from member.observed.status import SCALE
from member.tiflash.kind import KIND


def note_leaving(ctx: ReconcileContext) -> None:
    """Note that the pods leave whose stores do, or have left: then it can be taken back. Raises ApiError."""
    live = ctx.stateful_set(KIND.name)
    if live is None or ctx.held is not Held.NO or _phase(ctx) != SCALE or remembered(body := live.decode()):
        return
    status = KIND.status_in(ctx)
    leaving = {store.pod_name: store.id for store in status.tombstone_stores.values()}
    leaving |= {store.pod_name: store.id if store.state == OFFLINE else "" for store in status.stores.values()}
    for ordinal in reversed(range(body["spec"]["replicas"])):
        store_id = leaving.get(pod_name(ctx.tc, KIND.name, ordinal))
        if not store_id:
            # whoever removed those below it, it was no scale-in
            return
        if not pod_removal.cached(ctx, KIND.name, body, ordinal).begun:
            pod_removal.live(ctx, KIND.name, body, ordinal).note(int(store_id))


def _phase(ctx: ReconcileContext) -> str:
    """The phase in the status as this reconcile has found it."""
    status: Json = (ctx.owner.decode().get("status") or {}).get(KIND.name) or {}
    return str(status.get("phase") or "")
