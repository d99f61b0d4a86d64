"""The primary of a microservice, and its transfer before a pod goes (lifecycle.md 7.8)."""

from collections.abc import Collection

from dataplane.errors import Conflict
from member import api_clients
from member.actions import TransferPrimary
from member.context import ReconcileContext
from member.naming import address_book, ordinal_of
from member.outcome import Waiting
from member.pdms.status import members
from member.polling import next_poll


async def hand_over(ctx: ReconcileContext, name: str, pod: str, reason: str) -> Waiting | None:
    """Transfer the primary role away from a pod; None if the pod is not the primary, or if no other member can be.

    v1.6 continues at once, and tries only one member. Here PD must report the new primary first, and members that
    reject the role are skipped. Members without names, i.e. before v8.3.0, cannot transfer it, whatever version the
    spec has. Raises DataPlaneError.
    """
    there = members(ctx, name, api_clients.pd(ctx)) or ()
    if not there or any(each.name == each.address for each in there):
        return None
    primary, book = api_clients.pd(ctx).microservice_primary(name), address_book(ctx.tc)
    own = ordinal_of(pod)
    if book.ordinal_of(name, primary) != own:
        return None
    known = ((book.ordinal_of(name, each.address), each.name) for each in there)
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
        return Waiting(reason, what, next_poll(ctx, name))
    if refusal:
        raise refusal
    return None


def _successors(own: int, ordinals: Collection[int]) -> list[int]:
    """The ordinals above the pod from the highest (restarted already), then those below from the lowest."""
    above = sorted((each for each in ordinals if each > own), reverse=True)
    return [*above, *sorted(each for each in ordinals if each < own)]
