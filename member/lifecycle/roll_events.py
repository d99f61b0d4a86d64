"""The events of a roll in `kubectl get events`: one for each pod that is restarted, and one for the end."""

from apis import predicates
from kube.actions import Emit
from kube.events import NORMAL
from member.context import ClusterContext

RESTARTING = "RestartingPod"
FINISHED = "RollFinished"


async def tell_restart(ctx: ClusterContext, component: str, pod: str, what: str) -> None:
    """Emit an event for the restart of a pod, once; `what` is e.g. "restarting pod x"."""
    if ctx.memory.rolls.announced.get(component) == pod:
        return
    ctx.memory.rolls.announced[component] = pod
    updated, total = _progress(ctx, component)
    message = f"{what}{because(ctx, component)}; {updated} of {total} pods of {component} are up to date"
    await Emit(ctx.owner, NORMAL, RESTARTING, message)


async def tell_end(ctx: ClusterContext, component: str) -> None:
    """Emit the event for the end of a roll."""
    message = f"all {_progress(ctx, component)[1]} pods of {component} are up to date{because(ctx, component)}"
    await Emit(ctx.owner, NORMAL, FINISHED, message)
    ctx.memory.rolls.end(component)


def because(ctx: ClusterContext, component: str) -> str:
    """The cause of a roll, as the end of a sentence; empty if an earlier process began the roll."""
    cause = ctx.memory.rolls.causes.get(component)
    return f" ({cause})" if cause else ""


def _progress(ctx: ClusterContext, component: str) -> tuple[int, int]:
    """How many pods run the newest template, and how many exist, according to the StatefulSet's status."""
    status = predicates.status_of(ctx.tc, component)
    live = (status.stateful_set if status else None) or {}
    return live.get("updatedReplicas", 0), live.get("replicas", 0)
