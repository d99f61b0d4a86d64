"""What single components add to the rolling restart that all components share, and the events of a roll.

`kubectl get events` shows one event for each pod that is restarted, and one for the end.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from apis import predicates
from kube.actions import Decision, Emit
from kube.events import NORMAL
from kube.objects import Json, Object
from member.context import ClusterContext, OwnContext
from member.evidence import Evidence, Spared, spared
from member.outcome import NotDone, Refused


def _nothing_to_do(*_: object) -> None:
    return None


async def _no_step(*_: object) -> None:
    return None


async def _unrouted(_: OwnContext, pod: str) -> Spared:
    """Spare any pod that is not Ready, for components without votes and data: no Service routes clients to it."""
    return spared(pod, "it is not Ready, so no Service leads to it")


@dataclass(frozen=True, slots=True)
class Silence:
    """The data plane does not say whether a pod is needed: the reason, what is unknown, and what the user can do."""

    reason: str
    what: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Rolling:
    """What one component does before and after the restarts of its pods.

    All hooks that return NotDone or None return None, at no cost, if there is nothing to do.

    `blocked`: what must happen before a restart, in addition to the upgrades of other components. `begin`: what must
    happen before a new template (the second argument) may replace the running one. `prepare`: moves away what a Ready
    pod serves. `resume`: gives back to pods what was moved away, except to the named one, which is restarted next;
    called in every reconcile. `finish`: the cleanup once all pods run the newest template; called in every reconcile
    from then on.

    `unmet_condition`: what a Ready pod on the new revision still lacks before the next pod may be restarted. It
    completes "waiting until <pod> ..." and is empty if nothing is missing. `ignored_pods`: names of pods that the roll
    does not wait for, such as those that failover has replaced.

    `spare`: evidence that the data plane can do without a pod that is not Ready, after moving away what the pod serves.
    It returns a Silence if the data plane cannot be asked; a DataPlaneError counts as one. `forced`: evidence that the
    data plane cannot be observed, if the user wants the restart nevertheless.

    `refused_upgrade`: the refusal of the version in the spec, known before any pod restarts. Components that upgrade
    earlier or later then keep their version, too.
    """

    blocked: Callable[[OwnContext], NotDone | None] = _nothing_to_do
    unmet_condition: Callable[[OwnContext, Object], str] = lambda _ctx, _pod: ""
    prepare: Callable[[OwnContext, Object], Decision[NotDone | None]] = _no_step
    ignored_pods: Callable[[OwnContext], Collection[str]] = lambda _: ()
    begin: Callable[[OwnContext, Json, Json], Decision[NotDone | None]] = _no_step
    resume: Callable[[OwnContext, str], Decision[NotDone | None]] = _no_step
    finish: Callable[[OwnContext], Decision[NotDone | None]] = _no_step
    spare: Callable[[OwnContext, str], Decision[Spared | Silence | NotDone]] = _unrouted
    forced: Callable[[OwnContext], Evidence | None] = _nothing_to_do
    refused_upgrade: Callable[[OwnContext], Refused | None] = _nothing_to_do


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
