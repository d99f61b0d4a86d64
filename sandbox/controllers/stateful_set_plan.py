"""The next actions for a StatefulSet: a snapshot in, a plan out, no I/O."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS
from sandbox.conditions import condition, holds
from sandbox.controllers.revisions import HASH_LABEL
from sandbox.owners import is_deleted
from sandbox.stamps import parse

_SLOTS = msgspec.json.Decoder(list[int] | None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A StatefulSet and its pods by ordinal; revisions by their names."""

    stateful_set: Json
    pods: Mapping[int, Json]
    current: str
    updated: str
    now: float
    """Wall-clock seconds."""
    one_at_most: bool = False
    """True if no outdated pod is replaced while any pod is unavailable, including that pod itself."""

    @property
    def advanced(self) -> bool:
        """True if the set is an Advanced StatefulSet."""
        return is_advanced(self.stateful_set)

    @property
    def first(self) -> int:
        """The lowest ordinal that the set may have."""
        start: int = (self.stateful_set["spec"].get("ordinals") or {}).get("start", 0)
        return start

    @property
    def ordinals(self) -> Sequence[int]:
        """The desired ordinals, ascending. Advanced StatefulSets skip those in their annotation."""
        if not self.advanced:
            return range(self.first, self.first + self.replicas)
        slots = _slots(self.stateful_set)
        return tuple(itertools.islice((each for each in itertools.count() if each not in slots), self.replicas))

    @property
    def replicas(self) -> int:
        """The desired number of pods."""
        count: int = self.stateful_set["spec"].get("replicas", 1)
        return count

    @property
    def parallel(self) -> bool:
        """True if pods are created and deleted in parallel."""
        return bool(self.stateful_set["spec"].get("podManagementPolicy") == "Parallel")

    @property
    def rolling(self) -> bool:
        """True if the controller replaces outdated pods itself."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")

    @property
    def partition(self) -> int:
        """Pods with lower ordinals stay on the current revision."""
        strategy = self.stateful_set["spec"].get("updateStrategy") or {}
        partition: int = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        return partition


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions to take now. `create` maps ordinals to the name of their revision."""

    create: Mapping[int, str]
    delete: Sequence[Json]


def is_advanced(stateful_set: Json) -> bool:
    """True for an Advanced StatefulSet."""
    return stateful_set.get("apiVersion") == ADVANCED_STATEFUL_SETS.api_version


def plan(snapshot: Snapshot) -> Plan:
    """Create missing pods first, then delete superfluous ones, then replace one outdated pod."""
    create: dict[int, str] = {}
    leaving: list[Json] = []
    for ordinal in snapshot.ordinals:
        pod = snapshot.pods.get(ordinal)
        if pod is not None and finished(pod) and not is_deleted(pod):
            leaving.append(pod)
        if pod is None:
            create[ordinal] = _revision_for(snapshot, ordinal)
        if not snapshot.parallel and (pod is None or not serves(snapshot, pod)):
            return Plan(create, leaving)
    condemned = [snapshot.pods[each] for each in sorted(snapshot.pods, reverse=True) if each not in snapshot.ordinals]
    if condemned and not snapshot.parallel:
        return Plan(create, _next_condemned(snapshot, condemned))
    leaving += [pod for pod in condemned if not is_deleted(pod)]
    if create or leaving:
        return Plan(create, leaving)
    return Plan({}, _outdated(snapshot))


def serves(snapshot: Snapshot, pod: Json) -> bool:
    """True if a pod runs, has been Ready for long enough, and is not being deleted."""
    runs = pod.get("status", {}).get("phase") == "Running" and not is_deleted(pod)
    return runs and is_available(snapshot, pod)


def _next_condemned(snapshot: Snapshot, condemned: Sequence[Json]) -> Sequence[Json]:
    """The next pod to delete in order, from the highest ordinal; it waits for lower pods to be available."""
    highest = condemned[0]
    broken = [pod for pod in condemned if not serves(snapshot, pod)]
    waits = is_deleted(highest) or (len(broken) > 1 and broken[0] is highest)
    return [] if waits else [highest]


def status_of(snapshot: Snapshot, before: Json) -> Json:
    """The status of the set for its current pods."""
    pods = list(snapshot.pods.values())
    staying = [pod for pod in pods if not is_deleted(pod)]
    ready = [pod for pod in pods if holds(pod, "Ready")]
    updated = sum(_revision(pod) == snapshot.updated for pod in staying)
    current, current_count = snapshot.current, sum(_revision(pod) == snapshot.current for pod in staying)
    complete = updated == len(ready) == len(pods) and (snapshot.advanced or len(pods) == snapshot.replicas)
    if snapshot.rolling and complete:
        current, current_count = snapshot.updated, updated
    status = before | {
        "observedGeneration": snapshot.stateful_set["metadata"].get("generation", 0),
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(snapshot, pod) for pod in pods),
        "currentReplicas": current_count,
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": snapshot.updated,
        "collisionCount": before.get("collisionCount", 0),
    }
    if snapshot.advanced:
        del status["availableReplicas"]
    # Kubernetes omits zero counts, except these two
    return {key: value for key, value in status.items() if value != 0 or key in _ALWAYS}


_ALWAYS = ("replicas", "availableReplicas", "collisionCount")


def is_available(snapshot: Snapshot, pod: Json) -> bool:
    """True if a pod has been Ready for minReadySeconds."""
    if not holds(pod, "Ready"):
        return False
    return snapshot.now >= available_from(snapshot.stateful_set, pod)


def available_from(stateful_set: Json, pod: Json) -> float:
    """The time from which a Ready pod counts as available, in wall-clock seconds."""
    wait: int = stateful_set["spec"].get("minReadySeconds", 0)
    if not wait:
        return 0.0
    ready = condition(pod["status"].get("conditions"), "Ready")
    since = parse(ready["lastTransitionTime"]).timestamp() if ready is not None else 0.0
    return since + wait


def _outdated(snapshot: Snapshot) -> list[Json]:
    """The next pod to replace, once all higher ones are healthy."""
    if not snapshot.rolling:
        return []
    if snapshot.one_at_most and not all(serves(snapshot, pod) for pod in snapshot.pods.values()):
        return []
    for ordinal in sorted(snapshot.pods, reverse=True):
        if ordinal < snapshot.first + snapshot.partition:
            return []
        pod = snapshot.pods[ordinal]
        if _revision(pod) != snapshot.updated and not is_deleted(pod):
            return [pod]
        if not serves(snapshot, pod):
            return []
    return []


def _revision_for(snapshot: Snapshot, ordinal: int) -> str:
    below = ordinal < snapshot.first + snapshot.partition
    return snapshot.current if snapshot.rolling and below else snapshot.updated


def _slots(stateful_set: Json) -> set[int]:
    """The ordinals to skip; none if the annotation cannot be read."""
    text = (stateful_set["metadata"].get("annotations") or {}).get("delete-slots", "[]")
    try:
        return set(_SLOTS.decode(text) or ())
    except msgspec.MsgspecError:
        return set()


def _revision(pod: Json) -> str:
    revision: str = (pod["metadata"].get("labels") or {}).get(HASH_LABEL, "")
    return revision


def finished(pod: Json) -> bool:
    """True if a pod has ended for good."""
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
