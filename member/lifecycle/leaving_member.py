"""Steps that PD members and DM masters share when they leave their cluster (lifecycle.md 8.3)."""

from collections.abc import Callable, Sequence

from apis.ordinals import desired_replicas
from dataplane.errors import Conflict
from kube.actions import Action
from member.evidence import Evidence, spec_or_wait
from member.lifecycle.pod_removal import PodRemoval
from member.naming import ordinal_of
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.outcome import Waiting
from member.polling import next_poll

_ILL = "ill while it leaves"
_JOINING = "joining while it leaves"

_JOINS_WITHIN = 30.0
"""Seconds within which a pod that Discovery has allowed to start becomes a member, or never does."""


def may_join(removal: PodRemoval, component: str, of: str) -> Waiting | None:
    """The wait for a pod that is not yet a member but may be joining at this moment (8.3 BETTER).

    If a second member joins and its pod is then removed, the remaining single member loses its quorum for good. From
    now on Discovery does not let the pod join; a permission that it received earlier takes effect within 30 s. `of` is
    the name of the cluster that it joins: PD or DM.
    """
    ctx, pod = removal.ctx, removal.pod
    if removal.begun or pod is None or not pod.decode_as(Pod).spec.node_name:
        return None
    if ctx.memory.stopwatches.look(_JOINING, pod.metadata.uid, ctx.deps.clock).seconds >= _JOINS_WITHIN:
        return None
    what = f"pod {removal.name} may just be joining {of}; waiting {_JOINS_WITHIN:.0f} s for that before it is removed"
    return Waiting("ScalingIn", what, next_poll(ctx, component))


def remaining(removal: PodRemoval, component: str, *, serves: bool, period: float) -> int:
    """The number of members that must remain; 0 if the leaving one has been unhealthy for `period` seconds.

    `serves` is True if the leaving member is healthy or has already left.
    """
    ctx, stopwatches = removal.ctx, removal.ctx.memory.stopwatches
    if serves:
        stopwatches.forget(_ILL, removal.name)
        return desired_replicas(ctx.tc, component)
    ill_for = stopwatches.look(_ILL, removal.name, ctx.deps.clock).seconds
    return 0 if ill_for >= period else desired_replicas(ctx.tc, component)


async def take_out(
    removal: PodRemoval, component: str, of: str, what: str, remove: Callable[[Evidence], Action[None]]
) -> Waiting | None:
    """Take a member out of its quorum. Returns the wait for what prevents it, None once the member is out.

    `what` and `of` are for messages: a member of PD, a master of DM. `remove` makes the action from its evidence.
    """
    soon = next_poll(removal.ctx, component)
    wanted = spec_or_wait(removal.ctx, soon)
    if isinstance(wanted, Waiting):
        return wanted
    await removal.note()
    try:
        await remove(wanted)
    except Conflict as error:
        return Waiting("ScalingIn", f"{of} refused to remove the {what} of pod {removal.name}: {error}", soon)
    return None


def comes_first(removal: PodRemoval, component: str, what: str, lost: Sequence[str]) -> Waiting | None:
    """The wait until lost members are replaced, and until pods with higher ordinals are deleted.

    `lost` holds the pods of the lost members.
    """
    if lost:
        waiting = f"waiting for the lost {what} of {', '.join(lost)} to be replaced before scaling in"
        return Waiting("ScalingIn", waiting, next_poll(removal.ctx, component))
    names = (pod.metadata.name for pod in pods_of(removal.ctx, component))
    if above := [name for name in names if ordinal_of(name) > removal.ordinal]:
        return Waiting("ScalingIn", f"waiting for pod {', '.join(above)} to be deleted")
    return None
