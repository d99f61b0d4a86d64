"""Rolling restarts: one pod after another, from the highest ordinal down (lifecycle.md 7).

A StatefulSet restarts outdated pods whose ordinal is at or above its partition. The operator writes a changed pod
template with the partition above all pods, and then lowers the partition pod by pod. It does so once the pods above
serve again on the new revision, and the component has moved away what this pod serves. When all pods run the new
revision, the partition returns to above all pods.

A pod on an outdated revision that is not Ready comes first (F11), with two exceptions: it can recover by itself while
the new revision does not serve, or its node is cut off. The data plane must confirm that it can do without the pod;
while the data plane is silent, the pod's kubelet must report that nothing of it runs (docs/rules/silence.md).

Users may choose another order with an annotation of pods: a higher priority restarts earlier
(`member.lifecycle.roll_steps.first_in_turn`). What must hold before a restart is the same in every order.

In two cases the partition cannot reach the next pod alone: outdated pods are above it, or the StatefulSet waits for a
pod that the roll ignores. The operator then sets the strategy OnDelete for the time being, and deletes the pod. Once
it has returned, a partition above all outdated pods keeps the others on their revision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from structlog.contextvars import bound_contextvars

from apis import predicates
from apis.ordinals import OrdinalSet
from dataplane.errors import AddressNotUnderstood, ApiError, DataPlaneError
from kube.objects import Json, Object
from kube.semantic import covers
from member import labels
from member.apply.stateful_set import UpdateStrategy
from member.context import ClusterContext
from member.evidence import Evidence, LivePods, MayGo, Spared, pods_live, spared, stopped
from member.lifecycle.roll_steps import (
    Finished,
    Prepare,
    Replace,
    Restart,
    RollingPod,
    Step,
    blocked_by_higher,
    first_in_turn,
    next_step,
)
from member.lifecycle.roll_view import RollView
from member.lifecycle.rolling import (
    ANNOUNCE,
    BEGIN,
    FINISH,
    FINISH_FOR_USER,
    PREPARE,
    RESUME,
    SPARE,
    Rolling,
    Silence,
    answered,
    call_hook,
    refusal,
    tell_end,
    wait_of_step,
)
from member.naming import pod_name
from member.objects.stateful_set import ON_DELETE, is_rolling, ordinals_of
from member.observed.claims import would_lose_volume
from member.observed.nodes import kept_by_lost_nodes
from member.observed.pod import Pod
from member.observed.pods import is_mislabelled, live_revisions, pods_of
from member.observed.status import NORMAL, UPGRADE, is_upgrading, phase_while_upgrading, set_phase
from member.observed.troubles import LOOK_AGAIN, troubles_of
from member.outcome import Failed, NotDone, Wait, Waiting, poll_interval
from member.polling import next_poll, seconds_since

_FORCED = "restarting all pods at once (forced)"


@dataclass(frozen=True, slots=True)
class PodDeletion:
    """A pod to delete, which may be Ready only if it was `prepared`; `seen` is the live read of all pods."""

    pod: str
    seen: LivePods
    may_go: MayGo
    prepared: bool = False

    @property
    def why(self) -> Evidence:
        """The evidence for the deletion."""
        return self.seen & self.may_go

    @property
    def uid(self) -> str:
        """The UID of the pod in the live read; a new pod of the same name must not be deleted."""
        return next((pod.metadata.uid for pod in self.seen.pods if pod.metadata.name == self.pod), "")


@dataclass(frozen=True, slots=True)
class Roll:
    """What a roll writes into the StatefulSet in this reconcile, and what it waits for.

    `takes_template`: write the desired pod template. `delete`: the pod to delete after that write. `selected`: the
    Ready pod to restart next, empty if there is none. `restarts`: the pod that the write restarts. `others_resumed`:
    the other pods have got back what was moved away from them.
    """

    takes_template: bool
    strategy: UpdateStrategy
    outcome: NotDone | None = None
    delete: PodDeletion | None = None
    selected: str = ""
    restarts: str = ""
    others_resumed: bool = False


async def next_roll(
    ctx: ClusterContext,
    component: str,
    rolling: Rolling,
    body: Json,
    desired: Json,
    *,
    changed: str,
    scaling: bool,
    edited: bool = False,
) -> Roll:
    """Decide on the pod template and the update strategy of a StatefulSet, from its present and its desired state.

    `changed` names the difference in the template, empty if there is none. `scaling`: pods are added or removed, which
    comes first. `edited`: there is a foreign edit in the template that the operator cannot undo; no pod may be
    restarted with it.

    Sets the phase to Normal at the end of a roll. Raises ApiError, TransportError, DataPlaneError.
    """
    view = RollView(ctx, component, rolling, body, scaling, everything_changed=bool(changed))
    roll = Roll(True, _above_all(body, desired)) if edited else await _next_roll(view, desired, changed)
    if (roll.restarts or roll.delete) and desired["spec"]["replicas"] != body["spec"]["replicas"]:
        # this write adds or removes pods; the next one restarts a pod (I19)
        no_restarts = view.no_restarts(view.rolling_pods(view.cached))
        roll = replace(roll, strategy=no_restarts, restarts="", delete=None)
    if desired["spec"]["replicas"] > body["spec"]["replicas"] and _has_started_nowhere(view):
        # the pods that this write adds get the revision that runs, not one whose image may not exist
        roll = replace(roll, strategy=UpdateStrategy.above_all(ordinals_of(desired).bound))
    if not roll.others_resumed:
        unresumed = await give_back(ctx, component, rolling, roll.selected)
        roll = replace(roll, outcome=roll.outcome or unresumed)
    return _with_unreadable_priorities(view, roll)


def _with_unreadable_priorities(view: RollView, roll: Roll) -> Roll:
    """The roll, whose wait also names the annotations of pods that cannot decide on its order."""
    unreadable = view.unreadable_priorities() if roll.outcome else []
    if roll.outcome is None or not unreadable:
        return roll
    return replace(roll, outcome=replace(roll.outcome, message="; ".join([roll.outcome.message, *unreadable])))


async def give_back(ctx: ClusterContext, component: str, rolling: Rolling, selected: str = "") -> NotDone | None:
    """Give pods back what was moved away from them, except the `selected` one, which is restarted next.

    Returns what that waits for, None once it is done. Raises ApiError, TransportError.
    """
    return await call_hook(ctx, component, RESUME, rolling.resume(ctx, selected))


async def _next_roll(view: RollView, desired: Json, changed: str) -> Roll:
    upgrading = is_upgrading(view.body, view.cached, view.rolling.ignored_pods(view.ctx))
    if desired["spec"]["updateStrategy"]["type"] == ON_DELETE:
        return await _leave_to_the_user(view, changed, upgrading)
    if changed:
        return await _begin(view, desired, changed)
    if not upgrading and not _is_unfinished_on_delete(view):
        return await _finish(view, _at_rest(view, ordinals_of(desired)))
    if not view.scaling and view.has_revision:
        set_phase(view.ctx, view.component, phase_while_upgrading(view.ctx, view.component))
    if not view.is_observed:
        what = "waiting for the StatefulSet controller to report the newest revision"
        # the controller of Advanced StatefulSets reports nothing while a pod cannot be created
        outcome = kept_by_lost_nodes(view.ctx, view.component, what) or Waiting("RollingUpdate", what)
        return Roll(True, view.no_restarts(view.rolling_pods(view.cached)), outcome)
    return await _continue(view)


def _has_started_nowhere(view: RollView) -> bool:
    """True if pods have the newest revision, and none of them is Ready or can still become it."""
    if view.is_on_delete or view.has_ready_on_newest():
        return False
    updated = [pod for pod in view.rolling_pods(view.cached) if pod.updated]
    return bool(updated) and not any(pod.ready or pod.starting for pod in updated)


def _above_all(body: Json, desired: Json) -> UpdateStrategy:
    """A partition above all pods; under OnDelete the present strategy, which restarts none either."""
    if body["spec"]["updateStrategy"]["type"] == ON_DELETE:
        return UpdateStrategy.unchanged(body)
    return UpdateStrategy.above_all(ordinals_of(desired).bound)


def _is_unfinished_on_delete(view: RollView) -> bool:
    """True if a roll under OnDelete has missing pods, or pods that are not known to be updated.

    They have no revision label that would show the unfinished roll, and they return on the newest revision only while
    the strategy is OnDelete.
    """
    if not (view.is_on_delete and is_rolling(view.body)):
        return False
    return any(not (pod.updated or pod.ignored or pod.held) for pod in view.rolling_pods(view.cached))


async def _leave_to_the_user(view: RollView, changed: str, upgrading: bool) -> Roll:
    if not changed and not upgrading:
        return await _finish(view, UpdateStrategy.on_delete())
    what = f"{view.component} has the update strategy OnDelete; its pods get the new revision once you delete them"
    return Roll(True, UpdateStrategy.on_delete(), Waiting(ON_DELETE, await _with_what_is_owed(view, what)))


async def _with_what_is_owed(view: RollView, what: str) -> str:
    """`what`, and what the unfinished roll still keeps in place; both end only once the user acts."""
    owed = await call_hook(view.ctx, view.component, FINISH_FOR_USER, view.rolling.finish(view.ctx))
    return f"{what}; {owed.message}" if owed else what


def _at_rest(view: RollView, wanted: OrdinalSet) -> UpdateStrategy:
    """A partition above all pods, so that no foreign edit of the template restarts any of them.

    Until Kubernetes has made the newest revision the current one, the operator keeps the strategy that restarts no pod:
    below the partition, Kubernetes creates pods from the current revision. It switches once all pods run the newest
    revision and are Ready.
    """
    if is_rolling(view.body) or not view.is_observed:
        return view.no_restarts(view.rolling_pods(view.cached))
    is_ours = view.is_recorded and not view.is_on_delete
    moves = view.scaling or not is_ours or view.reaches(wanted.bound - 1)
    return UpdateStrategy.above_all(wanted.bound) if moves else UpdateStrategy.unchanged(view.body)


async def _finish(view: RollView, strategy: UpdateStrategy) -> Roll:
    """All pods run the newest template: wait until the last one serves, then undo what the roll has set up (F20)."""
    in_upgrade = predicates.in_phase(view.ctx.tc, view.component, UPGRADE)
    if in_upgrade:
        match next_step(view.rolling_pods(view.cached)):
            case Wait(what):
                return Roll(True, strategy, _waiting_for_pods(view, f"waiting {what}"))
            case Restart(pod) | Replace(pod):
                return Roll(True, strategy, _waiting(view, f"waiting until pod {pod.name} is Ready"))
        if not covers(view.body["spec"]["updateStrategy"], strategy.spec):
            return Roll(
                True, strategy, _waiting(view, "all pods run the new revision; raising the partition above them")
            )
    if unresumed := await give_back(view.ctx, view.component, view.rolling):
        return Roll(True, strategy, unresumed)
    if unfinished := await call_hook(view.ctx, view.component, FINISH, view.rolling.finish(view.ctx)):
        return Roll(True, strategy, unfinished, others_resumed=True)
    if in_upgrade:
        set_phase(view.ctx, view.component, NORMAL)
        await tell_end(view.ctx, view.component)
    return Roll(True, strategy, others_resumed=True)


async def _begin(view: RollView, desired: Json, changed: str) -> Roll:
    """Write the new template so that no Ready pod restarts (7.1 round A, F21)."""
    pods = view.rolling_pods(view.cached)
    if forced := view.rolling.forced(view.ctx):
        waiting = Waiting("ForcedUpgrade", f"{changed}; restarting all pods at once (forced)")
        return Roll(True, UpdateStrategy.lowered(0, forced), waiting)
    if refused := view.ctx.refused_upgrades.get(view.component):
        await call_hook(view.ctx, view.component, FINISH, view.rolling.finish(view.ctx))
        return Roll(False, view.no_restarts(pods), refused)
    step = next_step(pods)
    broken = step if isinstance(step, Restart | Replace) else None
    fixes_unready = broken is not None and view.may_fix_unready(broken.pod)
    fixing = await _may_go(view, broken, pods) if broken and fixes_unready else None
    may_go = fixing or view.blocked() or view.refused_elsewhere(desired)
    if isinstance(may_go, NotDone):
        # the cleanup of the previous roll must not wait until this one may begin
        await call_hook(view.ctx, view.component, FINISH, view.rolling.finish(view.ctx))
        return Roll(False, view.no_restarts(pods), may_go)
    if unprepared := await call_hook(view.ctx, view.component, BEGIN, view.rolling.begin(view.ctx, view.body, desired)):
        return Roll(False, view.no_restarts(pods), unprepared)
    strategy, restarts = (
        _first_restart(view, broken, may_go or await _may_go(view, broken, pods))
        if broken and not view.rolling.announces
        else (None, "")
    )
    outcome = Waiting("RollingUpdate", f"{changed}; restarting the pods one by one")
    return Roll(True, strategy or UpdateStrategy.above_all(ordinals_of(view.body).bound), outcome, restarts=restarts)


def _first_restart(
    view: RollView, step: Restart | Replace, may_go: MayGo | NotDone
) -> tuple[UpdateStrategy | None, str]:
    """The strategy that restarts a broken pod with the new template, and the pod; None and "" if it may not go."""
    if not isinstance(may_go, MayGo):
        return None, ""
    if isinstance(step, Replace):
        return UpdateStrategy.on_delete(), ""
    seen = _confirmed(view, step)
    if seen is None:
        return None, ""
    return UpdateStrategy.lowered(step.pod.ordinal, seen & may_go), step.pod.name


async def _continue(view: RollView) -> Roll:
    pods = view.rolling_pods(view.cached)
    no_restarts, step = view.no_restarts(pods), next_step(pods)
    match step:
        case Restart() | Replace():
            return await _restart_unready(view, step, pods, no_restarts)
        case Prepare() | Wait() if not view.reaches(0) and (forced := view.rolling.forced(view.ctx)):
            return Roll(True, UpdateStrategy.lowered(0, forced), _waiting(view, _FORCED))
        case Wait(what):
            waiting = _waiting_for_pods(view, f"waiting {what}")
            return Roll(True, no_restarts, waiting, selected=_next_in_line(view, pods))
        case Finished():
            return Roll(True, no_restarts, await _held(view, pods) or _waiting(view, "all pods run the new revision"))
        case Prepare():
            return await _prepare(view, step, pods, no_restarts)


async def _held(view: RollView, pods: Sequence[RollingPod]) -> Waiting | None:
    """The wait for the user to release held pods, once all others run the new revision."""
    held = [pod.name for pod in pods if pod.held and not pod.updated]
    if not held:
        return None
    key = labels.partition(view.component)
    found = view.ctx.tc.metadata.annotations[key]
    what = f'annotation {key}: "{found}" keeps {", ".join(held)} on the old revision; lower or remove it to continue'
    return Waiting("HeldBack", await _with_what_is_owed(view, what))


def _next_in_line(view: RollView, pods: Sequence[RollingPod]) -> str:
    """The pod that stays prepared while other pods delay its restart; empty if the roll is blocked."""
    if view.blocked():
        return ""
    ready = [pod for pod in pods if pod.ready and pod.is_to_restart]
    return first_in_turn(ready).name if ready else ""


async def _prepare(view: RollView, step: Prepare, pods: Sequence[RollingPod], no_restarts: UpdateStrategy) -> Roll:
    pod = step.pod
    prepared = spared(pod.name, "what it served has moved away")
    cached = next(obj for obj in view.cached if obj.metadata.name == pod.name)
    if view.reaches(pod.ordinal) and not blocked_by_higher(pod, pods):
        return await _restart_reached(view, step, pods, no_restarts, prepared)
    if blocked := view.blocked() or _mislabelled(view, cached):
        return Roll(True, no_restarts, blocked)
    unresumed = await give_back(view.ctx, view.component, view.rolling, pod.name)
    if isinstance(unresumed, Failed):
        # otherwise pod after pod would give up what it serves, until no pod is left to take it
        return Roll(True, no_restarts, unresumed, selected=pod.name, others_resumed=True)
    with bound_contextvars(pod=pod.name):
        unprepared = await _prepared(view, cached)
    if unprepared:
        return Roll(True, no_restarts, unprepared, selected=pod.name, others_resumed=True)
    if at_risk := would_lose_volume(view.ctx, cached):
        # a live read has found this; the cache does not show it yet
        return Roll(True, no_restarts, at_risk)
    what = f"restarting pod {pod.name}"
    if blocked_by_higher(pod, pods):
        roll = _by_deletion(view, step, prepared, what)
    else:
        roll = _restart(view, step, prepared, no_restarts, what)
    return replace(roll, outcome=roll.outcome or unresumed, selected=pod.name, others_resumed=True)


async def _restart_reached(
    view: RollView, step: Prepare, pods: Sequence[RollingPod], no_restarts: UpdateStrategy, prepared: Spared
) -> Roll:
    """Wait for Kubernetes to restart a pod within the partition; delete the pod if another one is not Ready.

    While a pod is not Ready, Kubernetes 1.35 restarts no other one.
    """
    name = step.pod.name
    waiting = _waiting(view, f"waiting for pod {name} to be restarted")
    if all(pod.ready for pod in pods):
        return Roll(True, no_restarts, waiting, selected=name)
    cached = next(obj for obj in view.cached if obj.metadata.name == name)
    # other pods may have failed since it was prepared
    unprepared = await _prepared(view, cached)
    seen = None if unprepared else _confirmed(view, step)
    delete = PodDeletion(name, seen, prepared, prepared=True) if seen else None
    return Roll(True, no_restarts, unprepared or waiting, delete, selected=name)


async def _prepared(view: RollView, pod: Object) -> NotDone | None:
    """Why a pod is not prepared for its restart; None once it is."""
    step = view.rolling.prepare(view.ctx, pod)
    return await call_hook(view.ctx, view.component, PREPARE, step, pod.metadata.name)


def _mislabelled(view: RollView, pod: Object) -> Waiting | None:
    """The wait for a pod's revision label that another client changed, which is no reason to restart (I42, R27)."""
    if not is_mislabelled(view.body, pod, partial(live_revisions, view.ctx)):
        return None
    revision = pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH, "")
    what = f"label {labels.CONTROLLER_REVISION_HASH} of pod {pod.metadata.name} says {revision!r}, which is no revision"
    return _waiting(view, f"{what} of its StatefulSet; waiting for its correction")


async def _restart_unready(
    view: RollView, step: Restart | Replace, pods: Sequence[RollingPod], no_restarts: UpdateStrategy
) -> Roll:
    """Restart a pod on the old revision that is not Ready."""
    if _is_being_restarted(view, step):
        return Roll(True, UpdateStrategy.unchanged(view.body), _recreating(view, step.pod))
    may_go = await _may_go(view, step, pods)
    if not isinstance(may_go, MayGo):
        if not view.reaches(0) and (forced := view.rolling.forced(view.ctx)):
            return Roll(True, UpdateStrategy.lowered(0, forced), _waiting(view, _FORCED))
        return Roll(True, no_restarts, may_go)
    pod = step.pod
    with bound_contextvars(pod=pod.name):
        announcing = view.rolling.announce(view.ctx, pod.name)
        unannounced = await call_hook(view.ctx, view.component, ANNOUNCE, announcing, pod.name)
    if unannounced:
        return Roll(True, no_restarts, unannounced)
    if isinstance(step, Replace):
        what = f"pod {pod.name} is not Ready on the old revision; replacing it before the pods above it"
        return _by_deletion(view, step, may_go, what)
    return _restart(
        view, step, may_go, no_restarts, f"pod {pod.name} is not Ready on the old revision; restarting it first"
    )


def _is_being_restarted(view: RollView, step: Restart | Replace) -> bool:
    """True if a pod leaves or is gone, and Kubernetes recreates it on the newest revision without another write.

    Whether it may go then decides nothing. Components whose `spare` also moves the leader away are left out.
    """
    if not view.rolling.asks_others or isinstance(step, Replace) or step.pod.exists:
        return False
    return view.is_recorded and view.reaches(step.pod.ordinal)


async def _may_go(view: RollView, step: Restart | Replace, pods: Sequence[RollingPod]) -> MayGo | NotDone:
    """The evidence that a pod that is not Ready may go.

    It comes from the data plane or, if that is silent, from the kubelet: nothing of the pod runs. Raises ApiError,
    TransportError.
    """
    pod = step.pod
    try:
        with bound_contextvars(pod=pod.name):
            answer = await view.rolling.spare(view.ctx, pod.name)
    except AddressNotUnderstood as error:
        return Failed("AddressNotUnderstood", str(error))
    except ApiError as error:
        refused = refusal(view.ctx, view.component, SPARE, error, pod.name)
        answer = Silence(refused.reason, refused.message)
    except DataPlaneError as error:
        answer = Silence("DataPlaneUnreachable", str(error))
    else:
        answer = answered(view.ctx, view.component, SPARE, answer)
    if not isinstance(answer, Silence):
        return answer
    if not pod.exists and not pod.starting:
        return spared(pod.name, "it is being recreated on the newest revision")
    if pod.starting:
        return _kept(view, answer, f"waiting for pod {pod.name}, which may start on its present revision")
    if isinstance(step, Replace) and (other := _may_return(pod, pods)):
        # replacing a pod sets OnDelete; the other pod would then return on a revision that is not known to work
        return _kept(view, answer, f"pod {other.name} may still serve, so that no pod is replaced before it is Ready")
    idle = stopped(view.ctx, view.component, pod.name)
    return idle or _kept(view, answer, f"pod {pod.name} is not Ready, but may still serve, so it is kept")


def _may_return(pod: RollingPod, pods: Sequence[RollingPod]) -> RollingPod | None:
    """Another pod on the old revision that is not Ready but may serve again; None if there is none."""
    others = (each for each in pods if each is not pod and not (each.updated or each.held or each.ready))
    return next((each for each in others if not (each.exists and each.is_idle)), None)


def _kept(view: RollView, silence: Silence, what: str) -> Waiting:
    """The wait for a data plane that does not say whether a pod is needed."""
    sentence = "; ".join(filter(None, (silence.what, what, silence.way_out)))
    return Waiting(silence.reason, sentence, next_roll_poll(view.ctx, view.component))


def _restart(view: RollView, step: Restart | Prepare, may_go: MayGo, no_restarts: UpdateStrategy, what: str) -> Roll:
    """Lower the partition to a pod, if a live read of all pods leads to the same step (F5)."""
    pod = step.pod
    if view.reaches(pod.ordinal):
        # an ordered StatefulSet, and any under Kubernetes 1.35, does not restart a pod behind one that is not Ready
        seen = _confirmed(view, step) if pod.exists and not pod.ready else None
        delete = PodDeletion(pod.name, seen, may_go) if seen else None
        return Roll(True, UpdateStrategy.unchanged(view.body), _restarting(view, pod, what), delete)
    seen = _confirmed(view, step)
    if seen is None:
        return Roll(True, no_restarts, _waiting(view, "waiting for the operator's cache to show the current pods"))
    strategy = UpdateStrategy.lowered(pod.ordinal, seen & may_go)
    return Roll(True, strategy, _restarting(view, pod, what), restarts=pod.name)


def _by_deletion(view: RollView, step: Replace | Prepare, may_go: MayGo, what: str) -> Roll:
    """Delete a pod that the partition cannot reach alone; under OnDelete, or it would return on its old revision."""
    pod = step.pod
    seen = _confirmed(view, step) if view.is_on_delete and pod.exists else None
    delete = PodDeletion(pod.name, seen, may_go, prepared=isinstance(step, Prepare)) if seen else None
    return Roll(True, UpdateStrategy.on_delete(), _restarting(view, pod, what), delete)


def _confirmed(view: RollView, step: Step) -> LivePods | None:
    """The pods, read live, if they lead to the same step; else None."""
    seen = pods_live(view.ctx, view.component)
    return seen if next_step(view.rolling_pods(seen.pods)) == step else None


def _waiting(view: RollView, what: str, again: float | None = None) -> Waiting:
    """The wait for a step of a roll, with the reason RollingUpdateStuck once the step lasts too long.

    `again`: seconds until the next check, by default as of a state that no event reports.
    """
    sentence = "; ".join([what, *_troubles(view)])
    return wait_of_step(view.ctx, view.component, what, sentence, again or next_roll_poll(view.ctx, view.component))


def _restarting(view: RollView, pod: RollingPod, what: str) -> NotDone:
    """The outcome for a pod that is being restarted, or that is gone and not yet recreated."""
    return _waiting(view, what) if pod.exists else _recreating(view, pod)


def _recreating(view: RollView, pod: RollingPod) -> NotDone:
    """The outcome for a pod that leaves or is gone. Events report its return, but not what prevents that."""
    return _waiting_for_pods(view, f"waiting for pod {pod.name} to be recreated", LOOK_AGAIN)


def _waiting_for_pods(view: RollView, what: str, again: float | None = None) -> NotDone:
    """The wait for pods that return once they have ended; pods on lost nodes may need the user."""
    ignored = view.rolling.ignored_pods(view.ctx)
    return kept_by_lost_nodes(view.ctx, view.component, what, ignored) or _waiting(view, what, again)


def _troubles(view: RollView) -> list[str]:
    """What keeps pods from starting, as part of the message, so that the user need not search for it."""
    names = [pod_name(view.ctx.tc, view.component, ordinal) for ordinal in ordinals_of(view.body).ordinals]
    found = troubles_of(view.ctx, view.component, names)
    return [f"{name}: {trouble}" for name, trouble in found.items() if trouble]


def next_roll_poll(ctx: ClusterContext, component: str) -> float:
    """Seconds until the next check of a roll; more often shortly after a pod has become Ready.

    A pod that has never been Ready, e.g. because no node has room for it, makes no check more urgent.
    """
    now = ctx.deps.clock.wall()
    times = (pod.decode_as(Pod).ready_since for pod in pods_of(ctx, component))
    polls = (poll_interval(seconds_since(since, now)) for since in times if since)
    return min([next_poll(ctx, component), *polls])
