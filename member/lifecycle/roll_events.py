"""What `kubectl get events` tells of a roll: each pod whose turn it is, once, and the end."""

from apis import predicates
from kube.events import NORMAL
from member.context import ClusterContext

RESTARTING = "RestartingPod"
FINISHED = "RollFinished"


def tell_restart(ctx: ClusterContext, component: str, pod: str, what: str) -> None:
    """Tell, once, that the turn of a pod has come; `what` is done with it, such as "restarting pod x"."""
    if ctx.memory.rolls.announced.get(component) == pod:
        return
    ctx.memory.rolls.announced[component] = pod
    updated, total = _progress(ctx, component)
    message = f"{what}{because(ctx, component)}; {updated} of {total} pods of {component} are up to date"
    ctx.deps.recorder.event(ctx.owner, NORMAL, RESTARTING, message)


def tell_end(ctx: ClusterContext, component: str) -> None:
    """Tell that a roll has ended."""
    message = f"all {_progress(ctx, component)[1]} pods of {component} are up to date{because(ctx, component)}"
    ctx.deps.recorder.event(ctx.owner, NORMAL, FINISHED, message)
    ctx.memory.rolls.end(component)


def because(ctx: ClusterContext, component: str) -> str:
    """What a roll is for, as the end of a sentence; empty where an earlier process has begun it."""
    cause = ctx.memory.rolls.causes.get(component)
    return f" ({cause})" if cause else ""


def _progress(ctx: ClusterContext, component: str) -> tuple[int, int]:
    """How many pods run the newest template, of how many, as the StatefulSet's status says."""
    status = predicates.status_of(ctx.tc, component)
    live = (status.stateful_set if status else None) or {}
    return live.get("updatedReplicas", 0), live.get("replicas", 0)
