"""The next step of a roll, from how its pods stand (lifecycle.md 7.1, F11); pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from member.observed.activity import Activity
from member.outcome import Wait


@dataclass(frozen=True, slots=True)
class RollingPod:
    """How one pod of a roll stands.

    `exists` is False also while it is being deleted. `unmet_condition` as in `Rolling`; `ignored`: it is among
    the `ignored_pods`. `held`: the user keeps it on the revision that it runs. `starting`: it is not Ready, but comes
    back by itself on the revision that it has. `activity`: what runs in it, None where there is no such pod.
    `untried`: nothing of it has started yet, and not because no node has room for it.
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

    @property
    def is_unheard(self) -> bool:
        """Whether nothing is known of what it does: its node is cut off, or lost."""
        return not self.ready and self.activity is Activity.UNHEARD

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it runs, or will in a moment."""
        return not self.exists or (self.activity is not None and self.activity.is_none)


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
    # what a pod does on a node that is cut off is unknown, and one that failover has replaced may never go
    known = [pod for pod in pods if not pod.is_unheard and (pod.exists or not pod.ignored)]
    outdated = [pod for pod in known if not (pod.updated or pod.held)]
    # as long as the new revision does not serve, one that comes back on the old one is better off with that
    serves = all(pod.ready for pod in pods if pod.updated and not pod.ignored)
    # nor is one that crashes better off with an image that no registry has
    can_start = not any(pod.updated and pod.untried and not pod.ignored for pod in pods)
    broken = [pod for pod in outdated if not pod.ready and (serves or not pod.starting)]
    if broken and can_start:
        # one of which nothing runs can't be needed, whatever keeps the others
        pod = ([pod for pod in broken if pod.is_idle] or broken)[-1]
        return Replace(pod) if blocked_by_higher(pod, pods) else Restart(pod)
    counted = [pod for pod in pods if not pod.ignored]
    if unready := next((pod for pod in reversed(counted) if not pod.ready), None):
        return Wait(f"until pod {unready.name} is Ready")
    if unmet_condition := next((pod for pod in reversed(counted) if pod.updated and pod.unmet_condition), None):
        return Wait(f"until pod {unmet_condition.name} {unmet_condition.unmet_condition}")
    return Prepare(outdated[-1]) if outdated else Finished()


def blocked_by_higher(pod: RollingPod, pods: Sequence[RollingPod]) -> bool:
    """Whether a StatefulSet would do something else before it restarts this pod: it goes from the highest down."""
    return any(other.ordinal > pod.ordinal and not (other.updated and other.ready) for other in pods)
