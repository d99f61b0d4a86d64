"""TiFlash: starts when PD has a quorum and uses placement rules (lifecycle.md 6.4)."""

from collections.abc import Iterator
from functools import partial

import structlog

from apis import predicates
from apis.accessor import find
from apis.pod_commands import REPLACE_VOLUME, REPLACEMENT_BEGUN
from dataplane.errors import DataPlaneError
from dataplane.pd import OFFLINE
from kube.objects import Json
from member import api_clients
from member.actions import EnablePlacementRules
from member.context import Held, ReconcileContext
from member.labels import TIKV_VOLUMES_READY
from member.lifecycle import pod_removal
from member.lifecycle.own_changes import remembered
from member.lifecycle.scaling import Scaling
from member.lifecycle.workload import Workload
from member.naming import pod_name
from member.objects.stateful_set import ordinals_of
from member.observed.pods import wanted_pods
from member.observed.status import SCALE
from member.observed.troubles import troubles_of
from member.outcome import Waiting
from member.polling import next_poll
from member.stores import commands, status
from member.stores.failover import failover
from member.stores.kind import TIFLASH_STORES
from member.stores.scaling import scale_in
from member.stores.status import outage, scale_out, stores_up
from member.tici.desired import META, WORKER
from member.tiflash import desired, rolling

log = structlog.get_logger(__name__)

_LOOKED_AT_AGAIN = 60.0
"""Seconds until PD is asked again if it uses placement rules."""


async def _gate(ctx: ReconcileContext) -> Waiting | None:
    return _recovering(ctx) or _index_servers(ctx) or await _placement_rules(ctx)


def _index_servers(ctx: ReconcileContext) -> Waiting | None:
    """The wait of the first pods for TiCI, whose indexes the reader inside TiFlash serves.

    v1.7 then also leaves a running TiFlash alone, its status and failover included (TICI-8).
    """
    if ctx.stateful_set("tiflash") or predicates.tells_of_stateful_set(ctx.tc, "tiflash"):
        return None
    parts = [own for name in (META, WORKER) if (own := find(ctx.tc, name)) and not own.suspended]
    missing = [own for own in parts if not predicates.all_members_ready(ctx.tc, own.name)]
    if not missing:
        return None
    titles = " and ".join(own.type.title for own in missing)
    what = f"the reader of full-text indexes needs all pods of {titles} to be Ready before TiFlash starts"
    if troubles := "; ".join(trouble for own in missing for trouble in _troubles(ctx, own.name)):
        what = f"{what}: {troubles}"
    return Waiting("WaitingForTiCI", what, next_poll(ctx, "tiflash"))


def _troubles(ctx: ReconcileContext, component: str) -> Iterator[str]:
    """What keeps pods of another component from being Ready, with their names."""
    for name, trouble in troubles_of(ctx, component, wanted_pods(ctx, component)).items():
        if trouble:
            yield f"{name} ({trouble})"


def _recovering(ctx: ReconcileContext) -> Waiting | None:
    """The wait for a restore of volumes, in which TiFlash starts last (3.1)."""
    if not ctx.tc.spec.recovery_mode:
        return None
    if TIKV_VOLUMES_READY not in ctx.tc.metadata.annotations:
        what = f"recovery mode: waiting for the restore to set the annotation {TIKV_VOLUMES_READY}"
        return Waiting("WaitingForVolumes", what)
    try:
        is_marked = api_clients.pd(ctx).is_recovering()
    except DataPlaneError as error:
        return Waiting("WaitingForVolumes", f"recovery mode: {error}", next_poll(ctx, "tiflash"))
    if not is_marked:
        return None
    what = "recovery mode: waiting for the restore to take back PD's mark snapshot-recovering"
    return Waiting("WaitingForVolumes", what, next_poll(ctx, "tiflash"))


async def _placement_rules(ctx: ReconcileContext) -> Waiting | None:
    """Enable placement rules in PD, which otherwise rejects TiFlash's stores. A silent PD stops no running pod."""
    if ctx.held is not Held.NO:
        # change nothing for an invalid spec
        return None
    if not ctx.memory.stopwatches.is_due("placement rules", "tiflash", _LOOKED_AT_AGAIN, ctx.deps.clock):
        return None
    try:
        pd = api_clients.pd(ctx)
        if pd.config().enable_placement_rules is False:
            await EnablePlacementRules(pd)
    except DataPlaneError as error:
        ctx.memory.stopwatches.forget("placement rules", "tiflash")
        log.debug("could not make PD place replicas by rules", error=str(error))
        if ctx.stateful_set("tiflash") is None:
            what = f"PD has to place replicas by rules before TiFlash starts: {error}"
            return Waiting("PlacementRulesOff", what, next_poll(ctx, "tiflash"))
    return None


async def _note_leaving(ctx: ReconcileContext) -> None:
    """Mark the pods of a scale-in that v1.6 began, so that the user can cancel it (8.6). Raises ApiError.

    v1.6 marks only pods of TiKV. For TiFlash, its phase shows a scale-in until the first reconcile writes the status.
    """
    live = ctx.stateful_set(TIFLASH_STORES.name)
    if live is None or ctx.held is not Held.NO or _phase(ctx) != SCALE or remembered(body := live.decode()):
        return
    status = TIFLASH_STORES.status_in(ctx)
    leaving = {store.pod_name: store.id for store in status.tombstone_stores.values()}
    leaving |= {store.pod_name: store.id if store.state == OFFLINE else "" for store in status.stores.values()}
    for ordinal in reversed(ordinals_of(body).ordinals):
        store_id = leaving.get(pod_name(ctx.tc, TIFLASH_STORES.name, ordinal))
        if not store_id:
            # a scale-in removes the highest ordinals first, so a store below this one was removed for another reason
            return
        if not pod_removal.cached(ctx, TIFLASH_STORES.name, body, ordinal).begun:
            await pod_removal.live(ctx, TIFLASH_STORES.name, body, ordinal).note(int(store_id))


def _phase(ctx: ReconcileContext) -> str:
    """The phase in the status at the start of this reconcile."""
    status: Json = (ctx.owner.decode().get("status") or {}).get(TIFLASH_STORES.name) or {}
    return str(status.get("phase") or "")


TIFLASH = Workload(
    name="tiflash",
    observe=lambda ctx: status.observe(ctx, TIFLASH_STORES),
    outage=lambda ctx: outage(ctx, TIFLASH_STORES),
    gate=_gate,
    services=desired.services,
    content=desired.content,
    stateful_set=desired.stateful_set,
    serving=lambda ctx: stores_up(ctx, TIFLASH_STORES),
    scaling=Scaling(scale_out(TIFLASH_STORES), scale_in(TIFLASH_STORES)),
    rolling=rolling.ROLLING,
    failover=lambda ctx: failover(ctx, TIFLASH_STORES),
    housekeeping=_note_leaving,
    commands={
        REPLACE_VOLUME: partial(commands.replace_volume, TIFLASH_STORES),
        REPLACEMENT_BEGUN: partial(commands.replace_volume, TIFLASH_STORES),
    },
    configured_by_v16=desired.configured_by_v16,
)
