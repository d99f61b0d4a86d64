"""The scale-in of a microservice: its primary role moves first, and PD keeps a source of timestamps (8.7)."""

from apis import predicates
from apis.accessor import find
from member import api_clients
from member.context import ReconcileContext
from member.evidence import Evidence
from member.labels import RESTARTED_AT
from member.lifecycle import stateless
from member.lifecycle.pod_removal import PodRemoval
from member.objects.config_map import ROLLING_UPDATE
from member.objects.stateful_set import ON_DELETE
from member.observed.status import NORMAL
from member.outcome import NotDone, Refused, Waiting
from member.pdms.primary import hand_over
from member.pdms.status import TSO
from member.polling import next_poll

_ASK_AGAIN = 30.0
"""Seconds until the next check of a spec that would leave PD without timestamps."""


async def drain(removal: PodRemoval) -> Evidence | NotDone:
    """Take one step in the removal of a pod. Raises ApiError, TransportError, DataPlaneError."""
    ctx, name = removal.ctx, removal.component
    if removal.staying == 0 and name == TSO and (needed := _needed(ctx)):
        return needed
    if waiting := await hand_over(ctx, name, removal.name, "ScalingIn"):
        return waiting
    return await stateless.SCALING.in_.drain(removal)


def _needed(ctx: ReconcileContext) -> NotDone | None:
    """Why tso must keep a pod: a PD in microservice mode issues no timestamps itself."""
    if predicates.uses_microservices(ctx.tc):
        way_out = "set spec.pdms[].replicas to 1 or more, or let PD give timestamps again with spec.pd.mode empty"
        return Refused("FailedScaleIn", f"keeping the pods of {TSO}: PD is in microservice mode; {way_out}", _ASK_AGAIN)
    what = f"keeping the pods of {TSO} until PD gives timestamps itself"
    if api_clients.pd(ctx).microservice_members(TSO) is not None:
        still = f"{what}: it is still in microservice mode{_way_out(ctx)}"
        return Waiting("ScalingIn", still, next_poll(ctx, TSO))
    if not predicates.in_phase(ctx.tc, "pd", NORMAL):
        return Waiting("ScalingIn", f"{what}: its pods are being restarted", next_poll(ctx, TSO))
    return None


def _way_out(ctx: ReconcileContext) -> str:
    """What the user must do if PD's pods do not restart automatically, as the end of a sentence."""
    pd = find(ctx.tc, "pd")
    if pd is not None and pd.stateful_set_update_strategy == ON_DELETE:
        return "; delete its pods one after another"
    if pd is not None and pd.config_update_strategy != ROLLING_UPDATE and predicates.in_phase(ctx.tc, "pd", NORMAL):
        return f"; restart its pods with the annotation {RESTARTED_AT} in spec.pd.annotations"
    return ""
