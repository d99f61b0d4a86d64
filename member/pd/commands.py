"""The commands on PD's pods (lifecycle.md 13).

With `replace-volume` the pod's member leaves PD, then pod and volumes are recreated. With `pd-transfer-leader` another
member becomes leader; with its value `delete-pod` the pod then restarts.
"""

from dataclasses import replace

from apis import pod_commands, predicates
from apis.ordinals import desired_replicas
from apis.pod_commands import DELETE_POD, NONE
from dataplane.errors import Conflict
from dataplane.pd import LiveMember, PDClient
from kube.objects import Object
from member import api_clients, labels
from member.actions import RemoveMember
from member.commands import (
    REPLACING,
    RETRY_BUSY,
    RETRY_SOON,
    begin,
    cancel,
    is_cancelled,
    is_withdrawn,
    others_not_ready,
    restart,
    restart_without_volumes,
    serves,
    withdraw,
)
from member.context import ReconcileContext
from member.evidence import member_gone
from member.lifecycle.quorum import Remove, Transfer, next_step
from member.naming import ordinal_of
from member.observed.command_annotations import Command, seconds_left
from member.observed.pods import pods_of
from member.observed.status import NORMAL
from member.outcome import Done, Outcome, Refused, Wait, Waiting
from member.pd.failover import ignored_pods
from member.pd.rolling import ROLLING, is_of, successor
from member.pd.scaling import hand_leadership, healths, voters

TRANSFERRING = "TransferringPDLeader"
_TRANSFER = 1.0
"""Seconds that PD takes to move the leader after it has accepted the request."""


async def replace_volume(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Take one step of a replacement. Raises DataPlaneError, ApiError, TransportError, LeaseExpired."""
    if is_cancelled(ctx, pod, command):
        return await cancel(ctx, pod)
    if waiting := await _leave_pd(ctx, pod, command):
        return waiting
    gone = member_gone(ctx, pod.metadata.name)
    if gone is None:
        return Waiting(REPLACING, f"waiting for PD to remove the member of pod {pod.metadata.name}", RETRY_SOON)
    return await restart_without_volumes(ctx, pod, command, gone)


async def _leave_pd(ctx: ReconcileContext, pod: Object, command: Command) -> Waiting | None:
    """Remove the member of a pod from PD, as a scale-in does; None when that is done."""
    pd, name = api_clients.pd(ctx), pod.metadata.name
    members = pd.members()
    match next_step(voters(ctx, members, healths(ctx, pd, len(members.members))), ordinal_of(name)):
        case Wait(what):
            return Waiting("PDUnhealthy", what, RETRY_BUSY)
        case Transfer() | Remove() if is_withdrawn(command):
            return await cancel(ctx, pod)
        case Transfer(to):
            await hand_leadership(ctx, pd, name, to.name)
            return Waiting(REPLACING, f"transferring PD leadership from pod {name} to {to.name}", RETRY_SOON)
        case Remove() if len(members.members) < desired_replicas(ctx.tc, "pd"):
            return Waiting(
                "PDUnhealthy", f"waiting for every PD pod to be a member before removing {name} from PD", RETRY_BUSY
            )
        case Remove(voter) if leaving := members.member(voter.id):
            return await _remove(ctx, pd, pod, command, leaving)
    return None


async def _remove(
    ctx: ReconcileContext, pd: PDClient, pod: Object, command: Command, leaving: LiveMember
) -> Waiting | None:
    if serves(pod) and (away := others_not_ready(ctx, pod, ignored_pods(ctx))):
        return away
    begun = await begin(ctx, pod, command)
    if isinstance(begun, Waiting):
        return begun
    try:
        await RemoveMember(pd, leaving, begun)
    except Conflict as error:
        return Waiting(REPLACING, f"PD refused to remove the member of pod {pod.metadata.name}: {error}", RETRY_BUSY)
    return None


async def transfer_leader(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Take one step of a transfer; the pod restarts only after the new leader is confirmed (I12).

    Raises DataPlaneError, ApiError, TransportError, LeaseExpired.
    """
    name = pod.metadata.name
    if seconds_left(pod, command, ctx.deps.clock.wall()) == 0:
        await withdraw(pod, (pod_commands.PD_TRANSFER_LEADER, labels.PD_EVICT_LEADER_EXPIRATION_TIME))
        return Done(
            f"annotation {command.key} of pod {name} has expired, or its expiration time is invalid",
            "TransferLeaderExpired",
        )
    if not predicates.in_phase(ctx.tc, "pd", NORMAL):
        return Waiting(
            "PDBusy",
            f"waiting until PD is neither being upgraded nor scaled before transferring its leadership from pod {name}",
            RETRY_BUSY,
        )
    return await _stay_away(ctx, name) if command.value == NONE else await _go(ctx, pod, command)


async def _go(ctx: ReconcileContext, pod: Object, command: Command) -> Outcome:
    """Restart the pod when it does not lead.

    Pods take turns; otherwise they would transfer leadership to each other.
    """
    name = pod.metadata.name
    first = min(_pods_with_command(ctx, DELETE_POD), default=name)
    if name != first:
        return Waiting(
            "AnotherPodRestarting", f"waiting for pod {first} to be restarted before restarting pod {name}", RETRY_BUSY
        )
    # the same preparation as in a rolling restart
    hold = await ROLLING.prepare(ctx, pod)
    if isinstance(hold, Waiting):
        return replace(hold, retry_after=_TRANSFER if hold.reason == TRANSFERRING else RETRY_BUSY)
    return hold or await restart(
        ctx, pod, command, ignored_pods(ctx), "PD has another leader, or no other member to lead it"
    )


async def _stay_away(ctx: ReconcileContext, pod: str) -> Outcome:
    """Transfer leadership to a member whose pod has no such command."""
    pd = api_clients.pd(ctx)
    if not is_of(ctx, pd.leader(), pod):
        return Done(f"pod {pod} does not lead PD", "LeaderTransferred")
    others = _pods_with_command(ctx, NONE, DELETE_POD)
    members = healths(ctx, pd, desired_replicas(ctx.tc, "pd"))
    able = [member for member in members if member.healthy and not any(is_of(ctx, member, name) for name in others)]
    to = successor(ctx, pod, able)
    if to is None:
        return Refused(
            "NoSuccessor",
            f"cannot transfer PD leadership from pod {pod}: no other member is both healthy and allowed to lead",
            RETRY_BUSY,
        )
    await hand_leadership(ctx, pd, pod, to)
    return Waiting(TRANSFERRING, f"transferring PD leadership from pod {pod} to {to}", _TRANSFER)


def _pods_with_command(ctx: ReconcileContext, *values: str) -> list[str]:
    """The pods that have the command with one of these values."""
    key = pod_commands.PD_TRANSFER_LEADER
    return [pod.metadata.name for pod in pods_of(ctx, "pd") if pod.metadata.annotations.get(key) in values]
