"""The choice of a pod's command: `replace-volume` first, then the commands of its component (lifecycle.md 13)."""

from kube.objects import Object
from member import labels
from member.commands.annotations import commands_of
from member.components import workload
from member.context import ReconcileContext
from member.evidence import is_same_cluster
from member.lifecycle.component_sync import REMOVED
from member.observed.instances import instance_taken
from member.outcome import Done, Outcome, Refused
from member.tikv import commands


def act(ctx: ReconcileContext, name: str, pod: Object | None) -> Outcome:
    """Take one step of the command of a pod; `pod` is None if the cache lacks it.

    Raises DataPlaneError, ApiError, TransportError, LeaseExpired.
    """
    command = next(iter(commands_of(pod)), None) if pod else None
    if command is None and name not in ctx.status.tikv.evict_leader:
        return Done()
    if taken := instance_taken(ctx):
        return taken
    if not is_same_cluster(ctx):
        return Refused("ForeignPD", "PD reports the id of another cluster; commands on pods are ignored")
    ended = Done() if command and commands.is_one(command) else commands.end(ctx, name, pod)
    if pod is None or command is None or pod.metadata.deletion_timestamp:
        return ended
    component = pod.metadata.labels[labels.COMPONENT]
    if component in ctx.removed:
        return Refused(
            REMOVED, f"{component} was removed from the spec; commands on its pods wait until it is restored"
        )
    return workload(component).commands[command.key](ctx, pod, command)
