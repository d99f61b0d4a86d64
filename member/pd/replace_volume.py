"""`replace-volume` on a PD pod: its member leaves PD, then pod and volumes are recreated (lifecycle.md 13)."""

from apis.ordinals import desired_replicas
from dataplane.errors import Conflict
from dataplane.pd import LiveMember, PDClient
from kube.objects import Object
from member import api_clients
from member.commands.annotations import RETRY_BUSY, RETRY_SOON, Command
from member.commands.replacement import REPLACING, begin, cancel, is_cancelled, is_withdrawn
from member.commands.restarting import others_not_ready, restart_without_volumes, serves
from member.context import ReconcileContext
from member.evidence import delete_member, member_gone
from member.lifecycle.quorum import Remove, Transfer, next_step
from member.naming import ordinal_of
from member.outcome import Outcome, Wait, Waiting
from member.pd.failover import ignored_pods
from member.pd.scale_in import voters
from member.pd.voting import healths


def act(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Take one step of a replacement. Raises DataPlaneError, ApiError, TransportError, LeaseExpired."""
    if is_cancelled(ctx, pod, command):
        return cancel(ctx, pod)
    if waiting := _leave_pd(ctx, pod, command):
        return waiting
    gone = member_gone(ctx, pod.metadata.name)
    if gone is None:
        return Waiting(REPLACING, f"waiting for PD to remove the member of pod {pod.metadata.name}", RETRY_SOON)
    return restart_without_volumes(ctx, pod, command, gone)


def _leave_pd(ctx: ReconcileContext, pod: Object, command: Command) -> Waiting | None:
    """Remove the member of a pod from PD, as a scale-in does; None when that is done."""
    pd, name = api_clients.pd(ctx), pod.metadata.name
    members = pd.members()
    match next_step(voters(ctx, members, healths(ctx, pd, len(members.members))), ordinal_of(name)):
        case Wait(what):
            return Waiting("PDUnhealthy", what, RETRY_BUSY)
        case Transfer() | Remove() if is_withdrawn(command):
            return cancel(ctx, pod)
        case Transfer(to):
            pd.transfer_leader(to.name)
            return Waiting(REPLACING, f"transferring PD leadership from pod {name} to {to.name}", RETRY_SOON)
        case Remove() if len(members.members) < desired_replicas(ctx.tc, "pd"):
            return Waiting(
                "PDUnhealthy", f"waiting for every PD pod to be a member before removing {name} from PD", RETRY_BUSY
            )
        case Remove(voter) if leaving := members.member(voter.id):
            return _remove(ctx, pd, pod, command, leaving)
    return None


def _remove(ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command, leaving: LiveMember) -> Waiting | None:
    if serves(pod) and (away := others_not_ready(ctx, pod, ignored_pods(ctx))):
        return away
    begun = begin(ctx, pod, command)
    if isinstance(begun, Waiting):
        return begun
    try:
        delete_member(pd, leaving, begun)
    except Conflict as error:
        return Waiting(REPLACING, f"PD refused to remove the member of pod {pod.metadata.name}: {error}", RETRY_BUSY)
    return None
