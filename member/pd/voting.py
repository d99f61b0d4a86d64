"""Which PD members vote. PD calls healthy whom it can ping at the port of clients, which takes no quorum (I9).

One that is cut off from the others alone looks healthy to PD. So whoever is about to take a member away asks each
member itself, too: its etcd says whether it has a leader and reads with the quorum.
"""

from dataclasses import replace

from dataplane.addresses import Stranger
from dataplane.errors import Unavailable
from dataplane.pd import Health, PDClient
from member import api_clients
from member.context import ReconcileContext
from member.ownership import member_owner
from ports.transport import ConnectionRefused


def healths(ctx: ReconcileContext, pd: PDClient, expected: int) -> tuple[Health, ...]:
    """All members; healthy are those that PD calls so and that, as far as they are ours, say themselves that they vote.

    `expected` is the number of members for which to give PD time. Raises DataPlaneError.
    """
    return tuple(replace(each, healthy=each.healthy and _votes(ctx, each)) for each in pd.health(members=expected))


def may_vote(ctx: ReconcileContext, member: Health) -> bool:
    """Whether a member of ours may vote: it does unless it says itself that it does not, or nothing listens there.

    That PD does not reach it, or that we do not, is no proof. One without a name has never started. Raises ApiError.
    """
    if not member.client_urls:
        return bool(member.name)
    try:
        return api_clients.pd_member(ctx, member.client_urls[0]).votes()
    except Unavailable as error:
        return not isinstance(error.cause, ConnectionRefused)


def _votes(ctx: ReconcileContext, member: Health) -> bool:
    if not member.client_urls or isinstance(member_owner(ctx.tc, member), Stranger):
        return True
    try:
        return api_clients.pd_member(ctx, member.client_urls[0]).votes()
    except Unavailable:
        return False
