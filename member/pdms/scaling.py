"""The scale-in of a microservice: its primary role moves first, and PD keeps a source of timestamps (7.8, 8.7)."""

from collections.abc import Collection
from dataclasses import replace

from apis import predicates
from apis.accessor import find
from dataplane.errors import Conflict
from member import api_clients
from member.actions import TransferPrimary
from member.context import ReconcileContext
from member.evidence import Evidence
from member.labels import RESTARTED_AT
from member.lifecycle import stateless
from member.lifecycle.pod_removal import PodRemoval
from member.naming import address_book, ordinal_of
from member.objects.config_map import ROLLING_UPDATE
from member.objects.stateful_set import ON_DELETE
from member.observed.status import NORMAL
from member.outcome import NotDone, Refused, Waiting
from member.pdms.status import TSO, members
from member.polling import next_poll


async def hand_over(ctx: ReconcileContext, name: str, pod: str) -> Waiting | None:
    """Transfer the primary role away from a pod; None if the pod is not the primary, or if no other member can be.

    v1.6 continues at once, and tries only one member. Here PD must report the new primary first, and members that
    reject the role are skipped. Members without names, i.e. before v8.3.0, cannot transfer it, whatever version the
    spec has. Raises DataPlaneError.
    """
    there = members(ctx, name, api_clients.pd(ctx)) or ()
    if not there or any(microservice.name == microservice.address for microservice in there):
        return None
    primary, book = api_clients.pd(ctx).microservice_primary(name), address_book(ctx.tc)
    own = ordinal_of(pod)
    if book.ordinal_of(name, primary) != own:
        return None
    known = ((book.ordinal_of(name, microservice.address), microservice.name) for microservice in there)
    others = {ordinal: each for ordinal, each in known if ordinal is not None}
    member, refusal = api_clients.pdms_member(ctx, name, primary), None
    for ordinal in _successors(own, others):
        try:
            await TransferPrimary(member, others[ordinal])
        except Conflict as error:
            # of tso's members PD lets two serve, and only these can be the primary
            refusal = error
            continue
        what = f"waiting until {others[ordinal]} is the primary of {name} in place of pod {pod}"
        return Waiting("TransferringPrimary", what, next_poll(ctx, name))
    if refusal:
        raise refusal
    return None


def _successors(own: int, ordinals: Collection[int]) -> list[int]:
    """The ordinals above the pod from the highest (restarted already), then those below from the lowest."""
    above = sorted((ordinal for ordinal in ordinals if ordinal > own), reverse=True)
    return [*above, *sorted(ordinal for ordinal in ordinals if ordinal < own)]


_ASK_AGAIN = 30.0
"""Seconds until the next check of a spec that would leave PD without timestamps."""


async def drain(removal: PodRemoval) -> Evidence | NotDone:
    """Take one step in the removal of a pod. Raises ApiError, TransportError, DataPlaneError."""
    ctx, name = removal.ctx, removal.component
    if not removal.staying.replicas and name == TSO and (needed := _needed(ctx)):
        return needed
    if waiting := await hand_over(ctx, name, removal.name):
        return replace(waiting, reason="ScalingIn")
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
