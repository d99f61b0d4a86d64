"""A rolling restart, one pod after another, from the highest ordinal down (lifecycle.md 7).

A StatefulSet restarts outdated pods whose ordinal is at or above its partition. So a change of the pod template goes in
with the partition above all pods, and the partition is lowered by one pod at a time, each when nothing can be hurt:
the pods above serve again on the new revision, and the component has let go of this one. When all have come to it, the
partition is raised above them again.

A pod that is not Ready on an outdated revision comes first and needs no such care (F11), unless it comes back by itself
while the new revision does not serve. Where the partition can't reach a pod alone - Ready outdated pods stand above it,
or the StatefulSet waits for one that is ignored - the strategy is OnDelete for as long, and the pod is deleted.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from structlog.contextvars import bound_contextvars

from apis import predicates
from apis.components import ComponentType, component_type
from dataplane.errors import AddressNotUnderstood, DataPlaneError
from kube.objects import Json, Object
from kube.semantic import covers
from member import labels
from member.apply.last_applied import read_record
from member.apply.stateful_set import UpdateStrategy
from member.context import ClusterContext, OwnContext
from member.evidence import Evidence, LivePods, pods_live
from member.lifecycle.roll_events import tell_end
from member.naming import pod_name
from member.objects.stateful_set import ON_DELETE, is_rolling
from member.observed.lost_claims import volume_being_deleted, would_lose_volume
from member.observed.nodes import kept_by_lost_nodes
from member.observed.pods import Pod, pods_of
from member.observed.revisions import is_mislabelled, live_revisions
from member.observed.status import NORMAL, UPGRADE, is_upgrading, phase_while_upgrading, set_phase
from member.observed.troubles import troubles_of
from member.outcome import Failed, NotDone, Wait, Waiting
from member.polling import next_poll, poll_interval, seconds_since

_STARTS_WITHIN = 300.0
"""Seconds that a pod may take to become Ready until nobody expects it any more."""

_FIRST_BACKOFFS = 15.0
"""Seconds within which a container that has ended once is started again; the pause doubles from 10 s on."""


def _nothing_to_do(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Rolling:
    """What one component does before and after the restart of its pods.

    `blocked`: what comes first beside the upgrades of other components. `begin`: what must be done before a new
    template, the second, may take the place of the running one. `unmet_condition`: what a Ready pod on the new revision
    still lacks before the next one may go, as an end of "waiting until <pod> ..."; empty when nothing. `prepare`: moves
    away what a Ready pod serves. `resume`: gives pods back what was moved away, except the named one, which is next;
    called in every reconcile. `finish`: what is left to do when all pods run the newest template; called in every
    reconcile then. `prepare_unready`: moves away what a pod serves though it is not Ready; when no server answers it is
    restarted as it is. All of these answer None when there is nothing (more) to do, and cost nothing then.
    `ignored_pods`: names of pods that a roll does not wait for, such as those that failover has replaced. `forced`:
    evidence that the data plane can't be looked at, where the user wants the pods restarted all the same.
    """

    blocked: Callable[[OwnContext], NotDone | None] = _nothing_to_do
    unmet_condition: Callable[[OwnContext, Object], str] = lambda _ctx, _pod: ""
    prepare: Callable[[OwnContext, Object], NotDone | None] = _nothing_to_do
    ignored_pods: Callable[[OwnContext], Collection[str]] = lambda _: ()
    begin: Callable[[OwnContext, Json, Json], NotDone | None] = _nothing_to_do
    resume: Callable[[OwnContext, str], NotDone | None] = _nothing_to_do
    finish: Callable[[OwnContext], NotDone | None] = _nothing_to_do
    prepare_unready: Callable[[OwnContext, str], NotDone | None] = _nothing_to_do
    forced: Callable[[OwnContext], Evidence | None] = _nothing_to_do


@dataclass(frozen=True, slots=True)
class RollingPod:
    """How one pod of a roll stands.

    `exists` is False also while it is being deleted. `unmet_condition` as in `Rolling`; `ignored`: it is among
    the `ignored_pods`. `held`: the user keeps it on the revision that it runs. `starting`: it is not Ready, but comes
    back by itself on the revision that it has.
    """

    name: str
    ordinal: int
    exists: bool
    ready: bool
    updated: bool
    unmet_condition: str = ""
    ignored: bool = False
    held: bool = False
    starting: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """Lower the partition to this pod, which is not Ready and has none above it that would be restarted with it."""

    pod: RollingPod


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete this pod, which is not Ready, past Ready outdated pods above it."""

    pod: RollingPod


@dataclass(frozen=True, slots=True)
class Prepare:
    """Move away what this Ready pod serves, then lower the partition to it."""

    pod: RollingPod


@dataclass(frozen=True, slots=True)
class Finished:
    """All pods run the new revision and serve."""


Step: TypeAlias = Wait | Restart | Replace | Prepare | Finished


def next_step(pods: Sequence[RollingPod]) -> Step:
    """The next step of a roll; `pods` are all that the StatefulSet should have, by ordinal (7.1, F11, I10, I14)."""
    # one that failover has replaced may never go: its node is lost
    outdated = [pod for pod in pods if not (pod.updated or pod.held) and (pod.exists or not pod.ignored)]
    # as long as the new revision does not serve, one that comes back on the old one is better off with that
    serves = all(pod.ready for pod in pods if pod.updated and not pod.ignored)
    if broken := [pod for pod in outdated if not pod.ready and (serves or not pod.starting)]:
        pod = broken[-1]
        return Replace(pod) if _blocked_by_higher(pod, pods) else Restart(pod)
    counted = [pod for pod in pods if not pod.ignored]
    if unready := next((pod for pod in reversed(counted) if not pod.ready), None):
        return Wait(f"until pod {unready.name} is Ready")
    if unmet_condition := next((pod for pod in reversed(counted) if pod.updated and pod.unmet_condition), None):
        return Wait(f"until pod {unmet_condition.name} {unmet_condition.unmet_condition}")
    return Prepare(outdated[-1]) if outdated else Finished()


def _blocked_by_higher(pod: RollingPod, pods: Sequence[RollingPod]) -> bool:
    """Whether a StatefulSet would do something else before it restarts this pod: it goes from the highest down."""
    return any(other.ordinal > pod.ordinal and not (other.updated and other.ready) for other in pods)


@dataclass(frozen=True, slots=True)
class PodDeletion:
    """A pod to delete, which may be Ready only when it was `prepared`; `why` is the live look at all pods."""

    pod: str
    why: LivePods
    prepared: bool = False

    @property
    def uid(self) -> str:
        """That of the pod in that look: another one of the name is none to delete."""
        return next((each.metadata.uid for each in self.why.pods if each.metadata.name == self.pod), "")


@dataclass(frozen=True, slots=True)
class Roll:
    """What the StatefulSet gets in this reconcile, and what the roll waits for.

    `takes_template`: the desired pod template goes in. `delete`: the pod to delete once that is written. `selected`:
    the Ready pod that is to be restarted next, empty when none is. `restarts`: the pod that what is written restarts.
    `others_resumed`: the other pods have been given back what was moved away from them.
    """

    takes_template: bool
    strategy: UpdateStrategy
    outcome: NotDone | None = None
    delete: PodDeletion | None = None
    selected: str = ""
    restarts: str = ""
    others_resumed: bool = False


def _waits_for(ctx: ClusterContext, own: ComponentType) -> Waiting | None:
    """Another component whose upgrade or scaling comes first (7.2)."""
    for row in map(component_type, own.upgrades_after):
        if predicates.in_phase(ctx.tc, row.name, "Upgrade", "Scale"):
            what = f"waiting for {row.title} to finish upgrading or scaling before restarting {own.title}'s pods"
            return Waiting(f"WaitingFor{row.word}", what)
        if row.name in ctx.rolls_to_come:
            what = f"waiting for {row.title}, whose turn comes first, before restarting {own.title}'s pods"
            return Waiting(f"WaitingFor{row.word}", what)
    return None


@dataclass(frozen=True, slots=True)
class _View:
    """The StatefulSet of a roll. `everything_changed`: its pods are about to be outdated, whatever they run."""

    ctx: ClusterContext
    component: str
    rolling: Rolling
    body: Json
    scaling: bool
    everything_changed: bool

    @property
    def cached(self) -> Sequence[Object]:
        """The pods as the cache has them."""
        return pods_of(self.ctx, self.component)

    def blocked(self) -> NotDone | None:
        """What must be done before a Ready pod may be restarted (7.2, 8.2)."""
        if self.ctx.stateful_set(self.component) is None:
            # what this reconcile observed is of no worth then (F1)
            return Waiting("CacheOutdated", "waiting for the cache to show the StatefulSet")
        if self.scaling:
            return Waiting("Scaling", f"waiting for {self.component} to be scaled before restarting its pods")
        at_risk = volume_being_deleted(self.ctx, self.component)
        return at_risk or _waits_for(self.ctx, component_type(self.component)) or self.rolling.blocked(self.ctx)

    def may_fix_unready(self, pod: RollingPod) -> bool:
        """Whether a new template may go in because of a pod that is not Ready, though the others must wait (F11).

        One that is merely on its way comes back by itself: a new version must not overtake that of another component.
        """
        if phase_while_upgrading(self.ctx, self.component) == UPGRADE:
            return True
        found = next((each for each in self.cached if each.metadata.name == pod.name), None)
        return found is not None and bool(found.decode_as(Pod).trouble)

    def rolling_pods(self, pods: Sequence[Object]) -> list[RollingPod]:
        by_name = {pod.metadata.name: pod for pod in pods}
        names = [pod_name(self.ctx.tc, self.component, ordinal) for ordinal in range(self.body["spec"]["replicas"])]
        ignored_pods = self.rolling.ignored_pods(self.ctx)
        found = [
            self._rolling_pod(ordinal, name, by_name.get(name), name in ignored_pods)
            for ordinal, name in enumerate(names)
        ]
        in_order = self.body["spec"].get("podManagementPolicy") == "OrderedReady"
        return _without_those_to_come(found) if in_order else found

    def _rolling_pod(self, ordinal: int, name: str, pod: Object | None, ignored: bool) -> RollingPod:
        held = ordinal < partition(self.ctx.tc.metadata.annotations, self.component)
        # under OnDelete what is gone comes back on the newest revision
        keeps = not _is_on_delete(self.body)
        if pod is None:
            return RollingPod(name, ordinal, False, False, False, ignored=ignored, held=held, starting=keeps)
        stays = not pod.metadata.deletion_timestamp
        ready = stays and pod.decode_as(Pod).is_ready
        revision = (self.body.get("status") or {}).get("updateRevision")
        updated = not self.everything_changed and pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) == revision
        unmet_condition = self._unmet_condition(pod) if updated and ready else ""
        starting = not ready and (self._may_start(pod) if stays else keeps)
        return RollingPod(name, ordinal, stays, ready, updated, unmet_condition, ignored, held, starting)

    def _may_start(self, pod: Object) -> bool:
        """Whether a pod that is not Ready has not been so for long, and nothing is known that keeps it from it."""
        found = pod.decode_as(Pod)
        since = found.ready_since or pod.metadata.creation_timestamp or ""
        age = seconds_since(since, self.ctx.deps.clock.wall()) if since else 0.0
        return age < _FIRST_BACKOFFS if found.backs_off else not found.trouble and age < _STARTS_WITHIN

    def _unmet_condition(self, pod: Object) -> str:
        tc = self.ctx.tc
        if not is_available(self.ctx, self.component, pod.decode_as(Pod)):
            return f"has been Ready for {min_ready_seconds(tc.metadata.annotations, self.component)} s"
        if not predicates.is_synced(tc, self.component):
            return "is reported healthy"
        return self.rolling.unmet_condition(self.ctx, pod)


def _without_those_to_come(pods: list[RollingPod]) -> list[RollingPod]:
    """The pods of a StatefulSet that makes one after another: none comes before all below it are Ready."""
    first = next((pod.ordinal for pod in pods if not pod.ready), len(pods))
    return [replace(pod, ignored=True) if pod.ordinal > first and not pod.exists else pod for pod in pods]


def next_roll(
    ctx: ClusterContext, component: str, rolling: Rolling, body: Json, desired: Json, *, changed: str, scaling: bool
) -> Roll:
    """Decide on the pod template and the update strategy of a StatefulSet, as it is (`body`) and as wanted.

    `changed` names what differs in the template; empty when nothing does. `scaling`: pods come or go, which is first.
    A roll that has come to its end is noted in the phase. Raises ApiError, TransportError, DataPlaneError.
    """
    view = _View(ctx, component, rolling, body, scaling, everything_changed=bool(changed))
    roll = _next_roll(view, desired, changed)
    if (roll.restarts or roll.delete) and desired["spec"]["replicas"] != body["spec"]["replicas"]:
        # pods come or go with this write: the restart is the next one's (I19)
        no_restarts = _no_restarts(body, view.rolling_pods(view.cached))
        roll = replace(roll, strategy=no_restarts, restarts="", delete=None)
    if roll.others_resumed:
        return roll
    unresumed = give_back(ctx, component, rolling, roll.selected)
    return replace(roll, outcome=roll.outcome or unresumed)


def give_back(ctx: ClusterContext, component: str, rolling: Rolling, selected: str = "") -> NotDone | None:
    """Give pods back what was moved away from them, except the `selected` one, which is next.

    What that still waits for, None when for nothing. Raises ApiError, TransportError.
    """
    return _call_hook(component, lambda: rolling.resume(ctx, selected))


def _next_roll(view: _View, desired: Json, changed: str) -> Roll:
    upgrading = is_upgrading(view.body, view.cached, view.rolling.ignored_pods(view.ctx))
    if desired["spec"]["updateStrategy"]["type"] == ON_DELETE:
        return _left_to_the_user(view, changed, upgrading)
    if changed:
        return _begin(view, desired, changed)
    if not upgrading and not _lacks_pods_on_delete(view):
        return _finish(view, _at_rest(view, desired["spec"]["replicas"]))
    if not view.scaling and _has_revision(view.body):
        set_phase(view.ctx, view.component, phase_while_upgrading(view.ctx, view.component))
    if not _observed(view.body):
        waiting = Waiting("RollingUpdate", "waiting for the StatefulSet controller to observe the new pod template")
        return Roll(True, _no_restarts(view.body, view.rolling_pods(view.cached)), waiting)
    return _continue(view)


def _lacks_pods_on_delete(view: _View) -> bool:
    """Whether pods are gone that come back on the newest revision as long as the strategy is OnDelete.

    Without their labels nothing else tells that the roll is not over.
    """
    if not (_is_on_delete(view.body) and is_rolling(view.body)):
        return False
    return any(not (pod.exists or pod.updated or pod.ignored or pod.held) for pod in view.rolling_pods(view.cached))


def _left_to_the_user(view: _View, changed: str, upgrading: bool) -> Roll:
    if not changed and not upgrading:
        return _finish(view, UpdateStrategy.on_delete())
    what = f"{view.component} has the update strategy OnDelete; its pods get the new revision once you delete them"
    return Roll(True, UpdateStrategy.on_delete(), Waiting(ON_DELETE, what))


def _at_rest(view: _View, replicas: int) -> UpdateStrategy:
    """A partition above all pods, so that no edit by another hand restarts any.

    Not before Kubernetes has made the newest revision the current one, which it does when all pods run it and are
    Ready: below the partition, pods are made of the current one.
    """
    if is_rolling(view.body) or not _observed(view.body):
        return _no_restarts(view.body, view.rolling_pods(view.cached))
    is_ours = _is_recorded(view.body) and not _is_on_delete(view.body)
    moves = view.scaling or not is_ours or _reaches(view.body, replicas - 1)
    return UpdateStrategy.above_all(replicas) if moves else UpdateStrategy.unchanged(view.body)


def _finish(view: _View, strategy: UpdateStrategy) -> Roll:
    """All pods run the newest template; the last one must serve, too, and what the roll left is tidied up (F20)."""
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
    hooks = view.rolling
    if unfinished := _call_hook(view.component, lambda: hooks.resume(view.ctx, "") or hooks.finish(view.ctx)):
        return Roll(True, strategy, unfinished)
    if in_upgrade:
        set_phase(view.ctx, view.component, NORMAL)
        tell_end(view.ctx, view.component)
    return Roll(True, strategy)


def min_ready_seconds(annotations: Mapping[str, str], component: str) -> int:
    """How long a pod must have been Ready before the next one is restarted; 0 unless an annotation says (14)."""
    text = annotations.get(labels.min_ready_seconds(component), "0")
    return int(text) if text.isdecimal() else 0


def partition(annotations: Mapping[str, str], component: str) -> int:
    """The ordinal below which the user keeps pods on their revision (lifecycle.md 14).

    It is above all where the annotation is no number: who wrote it wants some to stay.
    """
    text = annotations.get(labels.partition(component), "0")
    return int(text) if text.isdecimal() else sys.maxsize


def is_available(ctx: ClusterContext, component: str, pod: Pod) -> bool:
    """Whether a pod is Ready, and has been for as long as the user wants before something else is done."""
    wanted = min_ready_seconds(ctx.tc.metadata.annotations, component)
    if not (pod.is_ready and pod.ready_since):
        return pod.is_ready
    age = seconds_since(pod.ready_since, ctx.deps.clock.wall())
    # a clock that was put back must not hold up a roll (F44)
    return age < 0 or age >= wanted


def _begin(view: _View, desired: Json, changed: str) -> Roll:
    """The new template goes in, no Ready pod is restarted by it (7.1 round A, F21)."""
    pods = view.rolling_pods(view.cached)
    if forced := view.rolling.forced(view.ctx):
        waiting = Waiting("ForcedUpgrade", f"{changed}; restarting all pods at once (forced)")
        return Roll(True, UpdateStrategy.lowered(0, forced), waiting)
    step = next_step(pods)
    fixes_unready = isinstance(step, Restart | Replace) and view.may_fix_unready(step.pod)
    blocked = _unprepared_unready(view, step) if fixes_unready else view.blocked()
    if blocked:
        # what the roll before this one owes must not wait for as long
        _call_hook(view.component, lambda: view.rolling.finish(view.ctx))
        return Roll(False, _no_restarts(view.body, pods), blocked)
    if unprepared := _call_hook(view.component, lambda: view.rolling.begin(view.ctx, view.body, desired)):
        return Roll(False, _no_restarts(view.body, pods), unprepared)
    outcome = Waiting("RollingUpdate", f"{changed}; restarting the pods one by one")
    match step:
        case Restart(pod) if seen := _confirmed(view, step):
            return Roll(True, UpdateStrategy.lowered(pod.ordinal, seen), outcome, restarts=pod.name)
        case Replace():
            return Roll(True, UpdateStrategy.on_delete(), outcome)
    return Roll(True, UpdateStrategy.above_all(len(pods)), outcome)


def _continue(view: _View) -> Roll:
    pods = view.rolling_pods(view.cached)
    no_restarts, step = _no_restarts(view.body, pods), next_step(pods)
    match step:
        case Restart() | Replace():
            return _restart_unready(view, step, no_restarts)
        case Prepare() | Wait() if not _reaches(view.body, 0) and (forced := view.rolling.forced(view.ctx)):
            return Roll(True, UpdateStrategy.lowered(0, forced), _waiting(view, "restarting all pods at once (forced)"))
        case Wait(what):
            waiting = _waiting_for_pods(view, f"waiting {what}")
            return Roll(True, no_restarts, waiting, selected=_next_in_line(view, pods))
        case Finished():
            return Roll(True, no_restarts, _held(view, pods) or _waiting(view, "all pods run the new revision"))
        case Prepare():
            return _prepare(view, step, pods, no_restarts)


def _held(view: _View, pods: Sequence[RollingPod]) -> Waiting | None:
    """What is left to the user once all other pods run the new revision."""
    held = [pod.name for pod in pods if pod.held and not pod.updated]
    if not held:
        return None
    key = labels.partition(view.component)
    found = view.ctx.tc.metadata.annotations[key]
    what = f'annotation {key}: "{found}" keeps {", ".join(held)} on the old revision; lower or remove it to go on'
    return Waiting("HeldBack", what)


def _next_in_line(view: _View, pods: Sequence[RollingPod]) -> str:
    """The pod that stays prepared while others keep it from being restarted for a while."""
    if view.blocked():
        return ""
    return next((pod.name for pod in reversed(pods) if pod.ready and not (pod.updated or pod.held)), "")


def _prepare(view: _View, step: Prepare, pods: Sequence[RollingPod], no_restarts: UpdateStrategy) -> Roll:
    pod = step.pod
    if _reaches(view.body, pod.ordinal) and not _blocked_by_higher(pod, pods):
        waiting = _waiting(view, f"waiting for pod {pod.name} to be restarted")
        return Roll(True, no_restarts, waiting, selected=pod.name)
    cached = next(each for each in view.cached if each.metadata.name == pod.name)
    if blocked := view.blocked() or _mislabelled(view, cached):
        return Roll(True, no_restarts, blocked)
    unresumed = give_back(view.ctx, view.component, view.rolling, pod.name)
    if isinstance(unresumed, Failed):
        # else pod after pod would be left without what it serves, until none is left to take it
        return Roll(True, no_restarts, unresumed, selected=pod.name, others_resumed=True)
    with bound_contextvars(pod=pod.name):
        unprepared = _call_hook(view.component, lambda: view.rolling.prepare(view.ctx, cached))
    if unprepared:
        return Roll(True, no_restarts, unprepared, selected=pod.name, others_resumed=True)
    if at_risk := would_lose_volume(view.ctx, cached):
        # the cache does not show it yet
        return Roll(True, no_restarts, at_risk)
    what = f"restarting pod {pod.name}"
    roll = _by_deletion(view, step, what) if _blocked_by_higher(pod, pods) else _restart(view, step, no_restarts, what)
    return replace(roll, outcome=roll.outcome or unresumed, selected=pod.name, others_resumed=True)


def _mislabelled(view: _View, pod: Object) -> Waiting | None:
    """The wait for the label of a pod that others have changed: that is no reason to restart it (I42, R27)."""
    if not is_mislabelled(view.body, pod, partial(live_revisions, view.ctx)):
        return None
    told = pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH, "")
    what = f"label {labels.CONTROLLER_REVISION_HASH} of pod {pod.metadata.name} says {told!r}, which is no revision"
    return _waiting(view, f"{what} of its StatefulSet; waiting for it to be put right")


def _call_hook(component: str, question: Callable[[], NotDone | None]) -> NotDone | None:
    """What a hook answers; a data plane that gives no answer holds the roll and nothing else."""
    try:
        return question()
    except DataPlaneError as error:
        return Failed("DataPlaneUnreachable", f"cannot continue the rolling restart of {component}: {error}")


def _restart_unready(view: _View, step: Restart | Replace, no_restarts: UpdateStrategy) -> Roll:
    """Restart a pod that is not Ready on the old revision."""
    if unprepared := _unprepared_unready(view, step):
        return Roll(True, no_restarts, unprepared)
    pod = step.pod
    if isinstance(step, Replace):
        what = f"pod {pod.name} is not Ready on the old revision; replacing it before the pods above it"
        return _by_deletion(view, step, what)
    return _restart(view, step, no_restarts, f"pod {pod.name} is not Ready on the old revision; restarting it first")


def _unprepared_unready(view: _View, step: Step) -> NotDone | None:
    """What a pod serves though it is not Ready, and must be moved away before it is restarted."""
    if not isinstance(step, Restart | Replace) or not step.pod.exists or _reaches(view.body, step.pod.ordinal):
        return None
    try:
        with bound_contextvars(pod=step.pod.name):
            return view.rolling.prepare_unready(view.ctx, step.pod.name)
    except AddressNotUnderstood as error:
        return Failed("AddressNotUnderstood", str(error))
    except DataPlaneError:
        # the way back stays open (F11)
        return None


def _restart(view: _View, step: Restart | Prepare, no_restarts: UpdateStrategy, what: str) -> Roll:
    """Lower the partition to a pod, unless a live look at all pods gives another step (F5)."""
    pod = step.pod
    in_order = view.body["spec"].get("podManagementPolicy") == "OrderedReady"
    if _reaches(view.body, pod.ordinal):
        # a StatefulSet that keeps its pods in order does not pass a pod that is not Ready
        seen = _confirmed(view, step) if in_order and pod.exists and not pod.ready else None
        delete = PodDeletion(pod.name, seen) if seen else None
        return Roll(True, UpdateStrategy.unchanged(view.body), _restarting(view, pod, what), delete)
    seen = _confirmed(view, step)
    if seen is None:
        return Roll(True, no_restarts, _waiting(view, "waiting for the cache to show the current pods"))
    return Roll(True, UpdateStrategy.lowered(pod.ordinal, seen), _restarting(view, pod, what), restarts=pod.name)


def _by_deletion(view: _View, step: Replace | Prepare, what: str) -> Roll:
    """Delete a pod that the StatefulSet would not come to; under OnDelete, or it would come back as it was."""
    pod = step.pod
    seen = _confirmed(view, step) if _is_on_delete(view.body) and pod.exists else None
    delete = PodDeletion(pod.name, seen, prepared=isinstance(step, Prepare)) if seen else None
    return Roll(True, UpdateStrategy.on_delete(), _restarting(view, pod, what), delete)


def _confirmed(view: _View, step: Step) -> LivePods | None:
    """The pods, read live, if they lead to the same step."""
    seen = pods_live(view.ctx, view.component)
    return seen if next_step(view.rolling_pods(seen.pods)) == step else None


def _waiting(view: _View, what: str) -> Waiting:
    sentence = "; ".join([what, *_troubles(view)])
    return Waiting("RollingUpdate", sentence, next_roll_poll(view.ctx, view.component))


def _restarting(view: _View, pod: RollingPod, what: str) -> NotDone:
    """What is said of the restart of a pod, be it on its way."""
    if pod.exists:
        return _waiting(view, what)
    return _waiting_for_pods(view, f"waiting for pod {pod.name} to be recreated")


def _waiting_for_pods(view: _View, what: str) -> NotDone:
    """The wait for pods that come back once they have ended, which those on lost nodes may never do."""
    ignored = view.rolling.ignored_pods(view.ctx)
    return kept_by_lost_nodes(view.ctx, view.component, what, ignored) or _waiting(view, what)


def _troubles(view: _View) -> list[str]:
    """What keeps pods from starting; a wait for them says it, or the user would have to look for it."""
    names = [pod_name(view.ctx.tc, view.component, ordinal) for ordinal in range(view.body["spec"]["replicas"])]
    found = troubles_of(view.ctx, view.component, names)
    return [f"{name}: {trouble}" for name, trouble in found.items() if trouble]


def next_roll_poll(ctx: ClusterContext, component: str) -> float:
    """Seconds until the next look at a roll: a step of it is as young as the latest pod that became Ready."""
    now = ctx.deps.clock.wall()
    ages = [seconds_since(pod.decode_as(Pod).ready_since, now) for pod in pods_of(ctx, component)]
    return min(next_poll(ctx, component), poll_interval(min(ages, default=0.0)))


def _observed(body: Json) -> bool:
    """Whether the controller has seen the newest template, so that revisions can be compared (F9)."""
    seen = (body.get("status") or {}).get("observedGeneration", 0) >= body["metadata"].get("generation", 0)
    return bool(seen and _has_revision(body))


def _has_revision(body: Json) -> bool:
    """Whether the controller has named a revision; of one that was just made, nobody knows what its pods run (F10)."""
    return bool((body.get("status") or {}).get("updateRevision"))


def _no_restarts(body: Json, pods: Sequence[RollingPod]) -> UpdateStrategy:
    """The strategy that restarts no pod: the partition as it is, or after OnDelete one above all outdated pods.

    Where nothing tells that the partition is ours, it is one above all pods.
    """
    if not _is_on_delete(body):
        return UpdateStrategy.unchanged(body) if read_record(body) else UpdateStrategy.above_all(len(pods))
    return UpdateStrategy.after_on_delete(pod.ordinal for pod in pods if not pod.updated)


def _reaches(body: Json, ordinal: int) -> bool:
    """Whether the StatefulSet controller restarts an outdated pod of this ordinal by itself."""
    strategy = body["spec"]["updateStrategy"]
    return not _is_on_delete(body) and (strategy.get("rollingUpdate") or {}).get("partition", 0) <= ordinal


def _is_recorded(body: Json) -> bool:
    """Whether the update strategy is the one that was written last."""
    record = read_record(body)
    return record is not None and covers(body["spec"]["updateStrategy"], record.spec.get("updateStrategy") or {})


def _is_on_delete(body: Json) -> bool:
    return bool(body["spec"]["updateStrategy"]["type"] == ON_DELETE)
