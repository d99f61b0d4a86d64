"""The next step of a roll, computed from the state of its pods (lifecycle.md 7.1, F11). Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from member.observed.nodes import Activity
from member.outcome import Wait


@dataclass(frozen=True, slots=True)
class RollingPod:
    """The state of one pod in a roll.

    `exists` is False also while the pod is being deleted. `unmet_condition` as in `Rolling`. `ignored`: it is among the
    `ignored_pods`. `held`: the user keeps it on its revision. `starting`: it is not Ready, but can recover by itself on
    its revision. `activity`: what runs in it, None if the pod is missing. `untried`: none of its containers has started
    yet, for another reason than that it could not be scheduled. `lacks_volume`: it was created before its StatefulSet
    had one of the claim templates. `reached`: it is within the partition. `priority`: the user's annotation; 0 without
    one. `leads`: it leads PD, or the masters of DM.
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
    activity: Activity | None = None
    untried: bool = False
    lacks_volume: bool = False
    reached: bool = False
    priority: int = 0
    leads: bool = False

    @property
    def is_unheard(self) -> bool:
        """True if the pod's node is cut off or lost, so that its state is unknown."""
        return not self.ready and self.activity is Activity.UNHEARD

    @property
    def is_to_restart(self) -> bool:
        """True if the pod is outdated, and the user does not keep it on its revision."""
        return not (self.updated or self.held)

    @property
    def is_idle(self) -> bool:
        """True if nothing of the pod runs or is about to run."""
        return not self.exists or (self.activity is not None and self.activity.is_none)


@dataclass(frozen=True, slots=True)
class Restart:
    """Lower the partition to this pod, which is not Ready; no pod above it would be restarted with it."""

    pod: RollingPod


@dataclass(frozen=True, slots=True)
class Replace:
    """Delete this pod, which is not Ready, although outdated pods above it are Ready."""

    pod: RollingPod


@dataclass(frozen=True, slots=True)
class Prepare:
    """Move away what this Ready pod serves, then lower the partition to it, or delete it out of turn."""

    pod: RollingPod


@dataclass(frozen=True, slots=True)
class Finished:
    """All pods run the new revision and serve."""


Step: TypeAlias = Wait | Restart | Replace | Prepare | Finished


def next_step(pods: Sequence[RollingPod]) -> Step:
    """The next step of a roll; `pods` are all that the StatefulSet should have, by ordinal (7.1, F11, I10, I14)."""
    # the state of a pod behind a cut-off node is unknown, and a pod that failover has replaced may never go
    known = [pod for pod in pods if not pod.is_unheard and (pod.exists or not pod.ignored)]
    outdated = [pod for pod in known if pod.is_to_restart]
    # Kubernetes acts on no pod above the lowest one that lacks a volume, not even on a missing one
    lacking = next((pod for pod in pods if pod.lacks_volume), None)
    # while the new revision does not serve, a pod that can recover on the old one had better do so
    serves = all(pod.ready for pod in pods if pod.updated and not pod.ignored)
    # even for a pod that crashes, an image that cannot be pulled is no improvement
    can_start = not any(pod.updated and pod.untried and not pod.ignored for pod in pods)
    broken = [pod for pod in outdated if not pod.ready and (serves or not pod.starting)]
    if broken and can_start and lacking is None:
        # restart an idle pod first: nothing of it runs, so the component cannot need it
        pod = first_in_turn([pod for pod in broken if pod.is_idle] or broken)
        return Replace(pod) if blocked_by_higher(pod, pods) else Restart(pod)
    counted = [pod for pod in pods if not pod.ignored]
    if unready := next((pod for pod in reversed(counted) if not pod.ready), None):
        return Wait(f"until pod {unready.name} is Ready")
    if unmet_condition := next((pod for pod in reversed(counted) if pod.updated and pod.unmet_condition), None):
        return Wait(f"until pod {unmet_condition.name} {unmet_condition.unmet_condition}")
    if lacking is not None and outdated:
        return Prepare(lacking) if lacking in outdated and lacking.ready else Finished()
    return Prepare(first_in_turn(outdated)) if outdated else Finished()


def first_in_turn(pods: Sequence[RollingPod]) -> RollingPod:
    """The outdated pod that restarts first: the highest ordinal, unless one has a priority (7.1.1).

    Then the highest priority decides, and among equals the leader is last. A pod within the partition precedes all
    others: Kubernetes may restart it at any moment. Raises ValueError if there is none.
    """
    ordered = has_priorities(pods)

    def turn(pod: RollingPod) -> tuple[bool, int, bool, int]:
        if pod.reached or not ordered:
            return pod.reached, 0, True, pod.ordinal
        return False, pod.priority, not pod.leads, pod.ordinal

    return max(pods, key=turn)


def has_priorities(pods: Sequence[RollingPod]) -> bool:
    """True if the user has given one of the pods that are to restart a priority."""
    return any(pod.priority and pod.is_to_restart for pod in pods)


def blocked_by_higher(pod: RollingPod, pods: Sequence[RollingPod]) -> bool:
    """True if the StatefulSet controller, which goes from the highest ordinal down, would act on a higher pod first.

    It never restarts a pod that lacks a volume by itself.
    """
    above = (other for other in pods if other.ordinal > pod.ordinal)
    return pod.lacks_volume or any(not (other.updated and other.ready) for other in above)
