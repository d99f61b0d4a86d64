"""What is the same for a member that leaves PD and a master that leaves DM (lifecycle.md 8.3)."""

from collections.abc import Callable, Sequence

from apis.ordinals import desired_replicas
from dataplane.errors import Conflict
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
"""Seconds in which a pod that Discovery has let start becomes a member, or never does."""


def may_join(removal: PodRemoval, component: str, of: str) -> Waiting | None:
    """The wait for a pod that is no member, but may become one the next moment (8.3 BETTER).

    A member that joins when its pod is about to go takes the quorum of a single one with it, for good. From now on
    Discovery lets the pod join no more; what it was told before, it does soon. `of` what: PD, DM.
    """
    ctx, pod = removal.ctx, removal.pod
    if removal.begun or pod is None or not pod.decode_as(Pod).spec.node_name:
        return None
    if ctx.memory.stopwatches.look(_JOINING, pod.metadata.uid, ctx.deps.clock).seconds >= _JOINS_WITHIN:
        return None
    what = f"pod {removal.name} may just be joining {of}; waiting {_JOINS_WITHIN:.0f} s for that before it is removed"
    return Waiting("ScalingIn", what, next_poll(ctx, component))


def remaining(removal: PodRemoval, component: str, *, serves: bool, period: float) -> int:
    """How many members are to remain; 0 when the one that leaves has been ill for a period: it serves no purpose.

    `serves`: it is healthy, or is no member any more.
    """
    ctx, stopwatches = removal.ctx, removal.ctx.memory.stopwatches
    if serves:
        stopwatches.forget(_ILL, removal.name)
        return desired_replicas(ctx.tc, component)
    ill_for = stopwatches.look(_ILL, removal.name, ctx.deps.clock).seconds
    return 0 if ill_for >= period else desired_replicas(ctx.tc, component)


def take_out(
    removal: PodRemoval, component: str, of: str, what: str, delete: Callable[[Evidence], object]
) -> Waiting | None:
    """Take a member out of its quorum; what keeps it there, if something does.

    `what` it is, `of` what: a member of PD, a master of DM.
    """
    soon = next_poll(removal.ctx, component)
    wanted = spec_or_wait(removal.ctx, soon)
    if isinstance(wanted, Waiting):
        return wanted
    removal.note()
    try:
        delete(wanted)
    except Conflict as error:
        return Waiting("ScalingIn", f"{of} refused to remove the {what} of pod {removal.name}: {error}", soon)
    return None


def comes_first(removal: PodRemoval, component: str, what: str, lost: Sequence[str]) -> Waiting | None:
    """The wait for lost members, by their pods, to be replaced, and for the pods above to be gone."""
    if lost:
        waiting = f"waiting for the lost {what} of {', '.join(lost)} to be replaced before scaling in"
        return Waiting("ScalingIn", waiting, next_poll(removal.ctx, component))
    names = (pod.metadata.name for pod in pods_of(removal.ctx, component))
    if above := [name for name in names if ordinal_of(name) > removal.ordinal]:
        return Waiting("ScalingIn", f"waiting for pod {', '.join(above)} to be deleted")
    return None
