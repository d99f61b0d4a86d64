"""What is the same for a member that leaves PD and a master that leaves DM (lifecycle.md 8.3)."""

from collections.abc import Callable

from apis.components import component_type
from apis.ordinals import desired_replicas
from dataplane.errors import Conflict
from member.evidence import Evidence, spec_confirmed
from member.lifecycle.pod_removal import PodRemoval
from member.outcome import Waiting
from member.polling import next_poll

_ILL = "ill while it leaves"


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


def take_out(removal: PodRemoval, component: str, what: str, delete: Callable[[Evidence], object]) -> Waiting | None:
    """Take a member out of its quorum; what keeps it there, if something does. `what` it is: a member, a master."""
    soon = next_poll(removal.ctx, component)
    wanted = spec_confirmed(removal.ctx)
    if wanted is None:
        return Waiting("SpecChanged", f"waiting for the cache to show the current {removal.ctx.tc.kind}", soon)
    removal.note()
    try:
        delete(wanted)
    except Conflict as error:
        of = component_type(component).title
        return Waiting("ScalingIn", f"{of} refused to remove the {what} of pod {removal.name}: {error}", soon)
    return None
