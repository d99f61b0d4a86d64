"""A StatefulSet and its pods from the point of view of a roll.

A pod counts as available once it has been Ready for as long as the user demands (minReadySeconds by annotation,
lifecycle.md 14).
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apis import predicates
from apis.components import ComponentType, component_type
from kube.objects import Json, Object, is_observed
from kube.semantic import covers
from member import labels
from member.apply.last_applied import read_record
from member.apply.stateful_set import UpdateStrategy
from member.context import ClusterContext
from member.lifecycle.roll_steps import RollingPod, has_priorities
from member.lifecycle.rolling import Rolling
from member.naming import pod_name
from member.objects.stateful_set import ON_DELETE, ordinals_of
from member.observed.claims import lacks_claims, volume_being_deleted
from member.observed.nodes import Activity, cached_activity
from member.observed.pod import Pod
from member.observed.pods import pods_of
from member.observed.status import UPGRADE, image_of, phase_while_upgrading
from member.outcome import NotDone, Waiting
from member.polling import seconds_since
from ports.foreign_text import shortened


def min_ready_seconds(annotations: Mapping[str, str], component: str) -> int:
    """Seconds for which a pod must be Ready before the next one is restarted; 0 without the annotation (14)."""
    text = annotations.get(labels.min_ready_seconds(component), "0")
    return int(text) if text.isdecimal() else 0


def is_available(ctx: ClusterContext, component: str, pod: Pod) -> bool:
    """True if a pod is Ready, and has been for the seconds in the annotation."""
    wanted = min_ready_seconds(ctx.tc.metadata.annotations, component)
    if not (pod.is_ready and pod.ready_since):
        return pod.is_ready
    age = seconds_since(pod.ready_since, ctx.deps.clock.wall())
    # a clock that was set back must not block a roll (F44)
    return age < 0 or age >= wanted


_STARTS_WITHIN = 300.0
"""Seconds within which a pod is expected to become Ready."""

_FIRST_BACKOFFS = 15.0
"""Seconds within which Kubernetes restarts a container after its first end; the pause then doubles from 10 s on."""


@dataclass(frozen=True, slots=True)
class RollView:
    """The StatefulSet of a roll. `everything_changed`: a new template is about to make all pods outdated."""

    ctx: ClusterContext
    component: str
    rolling: Rolling
    body: Json
    scaling: bool
    everything_changed: bool

    @property
    def cached(self) -> Sequence[Object]:
        """The pods from the cache."""
        return pods_of(self.ctx, self.component)

    def blocked(self) -> NotDone | None:
        """What must happen before a Ready pod may be restarted (7.2, 8.2); None if the roll is free."""
        if self.ctx.stateful_set(self.component) is None:
            # the observations of this reconcile are worthless without the StatefulSet (F1)
            return Waiting("CacheOutdated", "waiting for the operator's cache to show the StatefulSet")
        if self.scaling:
            return Waiting("Scaling", f"waiting for {self.component} to be scaled before restarting its pods")
        at_risk = volume_being_deleted(self.ctx, self.component)
        return at_risk or _waits_for(self.ctx, component_type(self.component)) or self.rolling.blocked(self.ctx)

    def refused_elsewhere(self, desired: Json) -> Waiting | None:
        """The wait before a change of the image for a component that refuses its own and shares the order (7.2)."""
        if image_of(self.body, self.component) == image_of(desired, self.component):
            return None
        own = component_type(self.component)
        for row in map(component_type, self.ctx.refused_upgrades):
            if self.component in row.upgrades_after or row.name in own.upgrades_after:
                what = f"waiting until {row.title} can be upgraded, too, before restarting {own.title}'s pods"
                return Waiting(f"WaitingFor{row.word}", what)
        return None

    def may_fix_unready(self, pod: RollingPod) -> bool:
        """True if the roll may begin now because a pod is not Ready, although Ready pods must wait (F11).

        The pod must have a known trouble. A pod that is merely starting recovers by itself, and a new version must not
        overtake the upgrade of another component.
        """
        if phase_while_upgrading(self.ctx, self.component) == UPGRADE:
            return True
        found = next((obj for obj in self.cached if obj.metadata.name == pod.name), None)
        return found is not None and bool(found.decode_as(Pod).trouble)

    def rolling_pods(self, pods: Sequence[Object]) -> list[RollingPod]:
        """The states of all pods that the StatefulSet should have, by ordinal."""
        by_name = {pod.metadata.name: pod for pod in pods}
        names = {each: pod_name(self.ctx.tc, self.component, each) for each in ordinals_of(self.body).ordinals}
        ignored_pods = self.rolling.ignored_pods(self.ctx)
        found = [
            self._rolling_pod(ordinal, name, by_name.get(name), name in ignored_pods) for ordinal, name in names.items()
        ]
        if has_priorities(found):
            leader = self.rolling.leader(self.ctx)
            found = [replace(pod, leads=pod.name == leader) for pod in found]
        in_order = self.body["spec"].get("podManagementPolicy") == "OrderedReady"
        return _without_those_to_come(found) if in_order else found

    def unreadable_priorities(self) -> list[str]:
        """A sentence for each outdated pod whose annotation with its priority is no integer."""
        return [
            f"annotation {labels.RESTART_PRIORITY} of pod {pod.metadata.name} counts as 0: "
            f"{shortened(pod.metadata.annotations[labels.RESTART_PRIORITY])!r} is no integer such as 10; "
            "correct or remove it"
            for pod in self.cached
            if restart_priority(pod) is None and not self._is_updated(pod)
        ]

    def has_ready_on_newest(self) -> bool:
        """True if a pod that the StatefulSet should have is Ready on the newest revision."""
        by_name = {pod.metadata.name: pod for pod in self.cached}
        for ordinal in ordinals_of(self.body).ordinals:
            pod = by_name.get(pod_name(self.ctx.tc, self.component, ordinal))
            if pod is not None and self._is_updated(pod) and _is_ready(pod):
                return True
        return False

    def _rolling_pod(self, ordinal: int, name: str, pod: Object | None, ignored: bool) -> RollingPod:
        held = ordinal < partition(self.ctx.tc.metadata.annotations, self.component)
        # under OnDelete a missing pod returns on the newest revision
        keeps, reached = not self.is_on_delete, self.reaches(ordinal)
        if pod is None:
            return RollingPod(
                name, ordinal, False, False, False, ignored=ignored, held=held, starting=keeps, reached=reached
            )
        stays, found = not pod.metadata.deletion_timestamp, cached_activity(self.ctx, self.component, pod)
        ready, updated = _is_ready(pod), self._is_updated(pod)
        unmet_condition = self._unmet_condition(pod) if updated and ready else ""
        starting = not ready and (self._may_start(pod) if stays else keeps)
        return RollingPod(
            name,
            ordinal,
            stays,
            ready,
            updated,
            unmet_condition,
            ignored,
            held,
            starting,
            found,
            found is Activity.NEVER_STARTED and not pod.decode_as(Pod).is_unschedulable,
            lacks_claims(self.body, pod),
            reached,
            restart_priority(pod) or 0,
        )

    def _is_updated(self, pod: Object) -> bool:
        revision = self._status.get("updateRevision")
        return not self.everything_changed and pod.metadata.labels.get(labels.CONTROLLER_REVISION_HASH) == revision

    def _may_start(self, pod: Object) -> bool:
        """True if a pod has become unready recently and has no known trouble, so that it may still start.

        The process also times this itself: if a clock was set back, the pod's own timestamps lie in the future (F44).
        """
        found = pod.decode_as(Pod)
        since = found.ready_since or pod.metadata.creation_timestamp or ""
        age = seconds_since(since, self.ctx.deps.clock.wall()) if since else 0.0
        known = self.ctx.memory.stopwatches.look("not Ready", f"{pod.metadata.uid} {since}", self.ctx.deps.clock)
        age = max(age, known.seconds)
        return age < _FIRST_BACKOFFS if found.backs_off else not found.trouble and age < _STARTS_WITHIN

    def _unmet_condition(self, pod: Object) -> str:
        tc = self.ctx.tc
        if not is_available(self.ctx, self.component, pod.decode_as(Pod)):
            return f"has been Ready for {min_ready_seconds(tc.metadata.annotations, self.component)} s"
        if not predicates.is_synced(tc, self.component):
            return "is reported healthy"
        return self.rolling.unmet_condition(self.ctx, pod)

    @property
    def is_observed(self) -> bool:
        """True if the controller has observed the newest template, so that revisions can be compared (F9)."""
        return is_observed(self.body) and self.has_revision

    @property
    def has_revision(self) -> bool:
        """True once the controller has set a revision; before that, it is unknown what the pods run (F10)."""
        return bool(self._status.get("updateRevision"))

    @property
    def is_recorded(self) -> bool:
        """True if the update strategy is the one that the operator wrote last."""
        record = read_record(self.body)
        return record is not None and covers(self._strategy, record.spec.get("updateStrategy") or {})

    @property
    def is_on_delete(self) -> bool:
        """True if Kubernetes updates pods only when they are deleted."""
        return bool(self._strategy["type"] == ON_DELETE)

    def reaches(self, ordinal: int) -> bool:
        """True if the StatefulSet controller restarts an outdated pod of this ordinal by itself."""
        return not self.is_on_delete and (self._strategy.get("rollingUpdate") or {}).get("partition", 0) <= ordinal

    def no_restarts(self, pods: Sequence[RollingPod]) -> UpdateStrategy:
        """The strategy that restarts no pod: the present partition, or after OnDelete one above all outdated pods.

        Without a record that the operator wrote the partition, one above all pods. OnDelete stays until Kubernetes has
        observed it: the pod is deleted only then. In a roll in the user's order it also stays until that pod has
        returned on the newest revision.
        """
        if self.is_on_delete:
            returns = any(pod.is_to_restart and not (pod.exists or pod.ignored) for pod in pods)
            if not self.is_observed or (returns and has_priorities(pods)):
                return UpdateStrategy.unchanged(self.body)
            return UpdateStrategy.after_on_delete(pod.ordinal for pod in pods if not pod.updated)
        return (
            UpdateStrategy.unchanged(self.body)
            if read_record(self.body)
            else UpdateStrategy.above_all(ordinals_of(self.body).bound)
        )

    @property
    def _strategy(self) -> Json:
        strategy: Json = self.body["spec"]["updateStrategy"]
        return strategy

    @property
    def _status(self) -> Json:
        return self.body.get("status") or {}


def _is_ready(pod: Object) -> bool:
    return not pod.metadata.deletion_timestamp and pod.decode_as(Pod).is_ready


def _without_those_to_come(pods: list[RollingPod]) -> list[RollingPod]:
    """Ignore missing pods of an ordered StatefulSet: it creates none before all lower ones are Ready."""
    first = next((pod.ordinal for pod in pods if not pod.ready), len(pods))
    return [replace(pod, ignored=True) if pod.ordinal > first and not pod.exists else pod for pod in pods]


def _waits_for(ctx: ClusterContext, own: ComponentType) -> Waiting | None:
    """The wait for another component that upgrades or scales first (7.2)."""
    for row in map(component_type, own.upgrades_after):
        if predicates.in_phase(ctx.tc, row.name, "Upgrade", "Scale"):
            what = f"waiting for {row.title} to finish upgrading or scaling before restarting {own.title}'s pods"
            return Waiting(f"WaitingFor{row.word}", what)
        if row.name in ctx.rolls_to_come:
            what = f"waiting for {row.title}, whose turn comes first, before restarting {own.title}'s pods"
            return Waiting(f"WaitingFor{row.word}", what)
    return None


def partition(annotations: Mapping[str, str], component: str) -> int:
    """The ordinal below which the user keeps pods on their revision (lifecycle.md 14).

    If the annotation is not a number, all pods stay: the user wants to hold some, and it is unclear which.
    """
    text = annotations.get(labels.partition(component), "0")
    return int(text) if text.isdecimal() else sys.maxsize


_PRIORITY = re.compile(r"-?[0-9]{1,9}")


def restart_priority(pod: Object) -> int | None:
    """The user's priority for the restart of a pod, 0 without one; None if the annotation is no integer (7.1.1)."""
    text = pod.metadata.annotations.get(labels.RESTART_PRIORITY, "0")
    return int(text) if _PRIORITY.fullmatch(text) else None
