"""Which PD members vote. PD reports a member as healthy if its client port answers, which needs no quorum (I9).

A member that is cut off only from the other members looks healthy to PD. So before the operator removes or restarts a
member, it also asks each member itself: its etcd reports a leader, and reads with the quorum.
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
    """All members. Healthy means that PD reports it, and that the cluster's own members also confirm that they vote.

    `expected` is the number of members, which determines PD's timeout. Raises DataPlaneError.
    """
    return tuple(replace(each, healthy=each.healthy and _votes(ctx, each)) for each in pd.health(members=expected))


def may_vote(ctx: ReconcileContext, member: Health) -> bool:
    """True if a member may vote: unless it says that it does not, or nothing listens at its address.

    An unreachable member may still vote. A member without a name has never started. Raises ApiError.
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
