"""What single components add to the rolling restart that all components share, its events, and when it is stuck.

A roll counts as stuck when one step, the refusal of a hook, or its wait has lasted for ten minutes without progress.
That changes what users see, and restarts nothing.

`kubectl get events` shows one event for each pod that is restarted, and one for the end.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from apis import predicates
from apis.times import parse_time, stamp
from dataplane.errors import ApiError, DataPlaneError, SchedulersUnknown
from kube.actions import Decision, Emit
from kube.events import NORMAL
from kube.objects import Json, Object, condition_of
from member.context import ClusterContext, OwnContext
from member.evidence import Evidence, Spared, spared
from member.observed.status import UPGRADE
from member.outcome import Failed, NotDone, Refused, Waiting, poll_interval

T = TypeVar("T")


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
    does not wait for, such as those that failover has replaced. `announce`: what must happen, once the new template is
    written, before a pod that is missing or not Ready gets it.

    `spare`: evidence that the data plane can do without a pod that is not Ready, after moving away what the pod serves.
    It returns a Silence if the data plane cannot be asked; a DataPlaneError counts as one. `forced`: evidence that the
    data plane cannot be observed, if the user wants the restart nevertheless. `asks_others`: `spare` moves nothing away
    but asks each other pod, so it is not called for a pod that already leaves.

    `refused_upgrade`: the refusal of the version in the spec, known before any pod restarts. Components that upgrade
    earlier or later then keep their version, too.

    `leader`: the pod whose restart changes the leader, which is last among pods of equal priority; empty if there is
    none.
    """

    blocked: Callable[[OwnContext], NotDone | None] = _nothing_to_do
    unmet_condition: Callable[[OwnContext, Object], str] = lambda _ctx, _pod: ""
    prepare: Callable[[OwnContext, Object], Decision[NotDone | None]] = _no_step
    ignored_pods: Callable[[OwnContext], Collection[str]] = lambda _: ()
    begin: Callable[[OwnContext, Json, Json], Decision[NotDone | None]] = _no_step
    resume: Callable[[OwnContext, str], Decision[NotDone | None]] = _no_step
    finish: Callable[[OwnContext], Decision[NotDone | None]] = _no_step
    spare: Callable[[OwnContext, str], Decision[Spared | Silence | NotDone]] = _unrouted
    announce: Callable[[OwnContext, str], Decision[NotDone | None]] = _no_step
    forced: Callable[[OwnContext], Evidence | None] = _nothing_to_do
    refused_upgrade: Callable[[OwnContext], Refused | None] = _nothing_to_do
    leader: Callable[[OwnContext], str] = lambda _: ""
    asks_others: bool = False

    @property
    def announces(self) -> bool:
        """True if `announce` does something, so that no pod may restart in the write of the template."""
        return self.announce is not _no_step


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


_STUCK = timedelta(minutes=10)
"""How long one step of a roll may last before the roll counts as stuck."""

STANDS_STILL = "RollingUpdateStuck"
_LOOK_AT_PODS = "`kubectl describe pod` and `kubectl logs` of the pods that it names say why"
_REFUSED = "ApiError"


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook of `Rolling` that may ask the data plane; `cannot` says what a failure delays.

    `of_roll`: only a roll calls it; the others also run while no roll is under way. `is_the_users`: the user decides
    when the roll continues, so no wait for its end is too long.
    """

    name: str
    cannot: str
    of_roll: bool = False
    is_the_users: bool = False


BEGIN = Hook("begin", "cannot prepare {component} for a rolling restart", of_roll=True)
PREPARE = Hook("prepare", "cannot prepare pod {pod} for its restart", of_roll=True)
ANNOUNCE = Hook("announce", "cannot prepare {component} for another template of pod {pod}", of_roll=True)
SPARE = Hook("spare", "cannot find out whether {component} can do without pod {pod}", of_roll=True)
RESUME = Hook("resume", "cannot give the pods of {component} back what they served")
FINISH = Hook("finish", "cannot undo what was set up for the rolling restart of {component}")
FINISH_FOR_USER = replace(FINISH, is_the_users=True)


async def call_hook(
    ctx: ClusterContext, component: str, hook: Hook, decision: Decision[NotDone | None], pod: str = ""
) -> NotDone | None:
    """The answer of a hook; if the data plane fails, only the roll waits, not the rest of the reconcile."""
    cannot = hook.cannot.format(component=component, pod=pod)
    try:
        answer = await decision
    except ApiError as error:
        return refusal(ctx, component, hook, error, pod)
    except SchedulersUnknown as error:
        # a new leader of PD loads them within seconds, and no event reports it
        answer = _wait_for_schedulers(ctx, component, hook, cannot, error)
    except DataPlaneError as error:
        return Failed("DataPlaneUnreachable", f"{cannot}: {error}")
    return answered(ctx, component, hook, answer)


def answered(ctx: ClusterContext, component: str, hook: Hook, answer: T) -> T | Waiting:
    """The answer of a hook; a wait has the reason RollingUpdateStuck once it lasts too long without progress.

    Limits of the wait itself, e.g. `evictLeaderTimeout`, still hold: this is only a report.
    """
    if isinstance(answer, Waiting):
        return _wait_of_hook(ctx, component, hook, answer)
    for kind in (_kind(component, hook), _kind_of_wait(component, hook)):
        ctx.memory.failure_timers.reset(kind)
        ctx.memory.rolls.begins[kind] = ("", None)
    return answer


def _wait_of_hook(ctx: ClusterContext, component: str, hook: Hook, waiting: Waiting) -> Waiting:
    step = waiting.step or waiting.message
    since = _stuck_since(ctx, component, _kind_of_wait(component, hook), step, waiting.reason)
    if since is None or hook.is_the_users or not _is_under_way(ctx, component, hook):
        return waiting
    what = f"the rolling restart of {component} has stood still since {stamp(since)} ({waiting.reason})"
    message = f"{what}: {waiting.message}; {waiting.way_out or _LOOK_AT_PODS}"
    return Waiting(STANDS_STILL, message, waiting.retry_after)


def _wait_for_schedulers(
    ctx: ClusterContext, component: str, hook: Hook, cannot: str, error: SchedulersUnknown
) -> Waiting:
    """The wait of a hook until PD has loaded its schedulers."""
    (timer,) = ctx.memory.failure_timers.update(_kind_of_wait(component, hook), [cannot], ctx.deps.clock).values()
    return Waiting("SchedulersUnknown", f"{cannot}: {error}", poll_interval(timer.seconds), step=cannot)


def _is_under_way(ctx: ClusterContext, component: str, hook: Hook) -> bool:
    return hook.of_roll or predicates.in_phase(ctx.tc, component, UPGRADE)


def refusal(ctx: ClusterContext, component: str, hook: Hook, error: ApiError, pod: str = "") -> Failed:
    """The outcome of a hook that the data plane has refused."""
    cannot = hook.cannot.format(component=component, pod=pod)
    what = f"{cannot}: {error}"
    since = _stuck_since(ctx, component, _kind(component, hook), cannot, _REFUSED)
    if since and _is_under_way(ctx, component, hook):
        return Failed(STANDS_STILL, f"the rolling restart of {component} has stood still since {stamp(since)}: {what}")
    return Failed(_REFUSED, what)


def wait_of_step(ctx: ClusterContext, component: str, step: str, sentence: str, again: float) -> Waiting:
    """The wait for a step of a roll, with the reason RollingUpdateStuck once the step lasts too long.

    `sentence` begins with the step; `again`: seconds until the next check.
    """
    since = _stuck_since(ctx, component, f"{component} step of a roll", step)
    if since is None:
        return Waiting("RollingUpdate", sentence, again)
    return Waiting(STANDS_STILL, f"the rolling restart has stood still since {stamp(since)}: {sentence}", again)


def _kind(component: str, hook: Hook) -> str:
    return f"{component} refuses to {hook.name}"


def _kind_of_wait(component: str, hook: Hook) -> str:
    return f"{component} waits to {hook.name}"


def _stuck_since(ctx: ClusterContext, component: str, kind: str, step: str, reason: str = "") -> datetime | None:
    """Since when `step` lasts, if that is too long; None if it is not. `kind`: the timers of such steps.

    The timers are memory of this process. So that a restart of the operator does not delay the report, or take it back,
    the component's condition counts as well, with `reason` if the step alone has that. Its times come from a wall
    clock, which may jump: they decide on a reason, and on no restart.
    """
    (timer,) = ctx.memory.failure_timers.update(kind, [step], ctx.deps.clock).values()
    measured = [timer.since] if timer.seconds >= _STUCK.total_seconds() else []
    return min(
        [*measured, *_reported(ctx, component, step), *_earlier_begin(ctx, component, kind, step, reason)], default=None
    )


def _reported(ctx: ClusterContext, component: str, step: str) -> Iterator[datetime]:
    """Since when the condition reports that this step is stuck; a former process may have set it."""
    condition, since = _progressing(ctx, component)
    if since and condition.get("reason") == STANDS_STILL and step in str(condition.get("message")):
        yield since - _STUCK


def _earlier_begin(ctx: ClusterContext, component: str, kind: str, step: str, reason: str) -> Iterator[datetime]:
    """The begin of a step that has lasted too long, and that a former process began.

    The condition says since when its reason lasts, under which other steps may have passed. So its time counts only for
    the step that the condition showed when this process began, until another step follows.
    """
    begins = ctx.memory.rolls.begins
    if kind not in begins:
        condition, since = _progressing(ctx, component)
        is_this = bool(reason) and condition.get("reason") == reason and step in str(condition.get("message"))
        begins[kind] = (step, since if is_this else None)
    begun_with, since = begins[kind]
    if begun_with != step:
        begins[kind] = (begun_with, None)
    elif since and ctx.deps.clock.wall() - since >= _STUCK:
        yield since


def _progressing(ctx: ClusterContext, component: str) -> tuple[Json, datetime | None]:
    """The component's condition Progressing, and its time."""
    status = predicates.status_of(ctx.tc, component)
    condition = condition_of(status.conditions if status else (), "Progressing")
    return condition, parse_time(str(condition.get("lastTransitionTime") or ""))
