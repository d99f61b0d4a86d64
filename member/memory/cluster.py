"""What one reconcile of a cluster leaves to the next, for as long as the process lives.

Nothing that protects data depends on it: an operator that has just started waits longer, asks more or repeats an event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apis.problem import Problem
from kube.taken_names import TakenNames
from member.memory.decisions import Decided, KeptAnswer, Settled
from member.memory.pauses import AcceptedSettings, Complaints, Refusals
from member.memory.timers import FailureTimers, Stopwatches


@dataclass(slots=True)
class Rolls:
    """The rolling restarts of a cluster, by component."""

    causes: dict[str, str] = field(default_factory=dict)
    """Sentences about what has changed; none for a roll that an earlier process began."""
    announced: dict[str, str] = field(default_factory=dict)
    """The pods whose restart the last event announced."""

    def begin(self, component: str, cause: str) -> None:
        """Record that a new pod template is written, and why."""
        self.causes[component] = cause
        self.announced.pop(component, None)

    def end(self, component: str) -> None:
        """Record that all pods run the newest template."""
        self.causes.pop(component, None)
        self.announced.pop(component, None)


@dataclass(slots=True)
class ClusterMemory:
    """The memory of one TidbCluster or DMCluster. Only the worker that reconciles the cluster uses it.

    After each field: what a restart of the operator costs.
    """

    failure_timers: FailureTimers = field(default_factory=FailureTimers)
    """Failover periods begin again."""
    stopwatches: Stopwatches = field(default_factory=Stopwatches)
    """Limits such as the one of a leader eviction begin again."""
    rolls: Rolls = field(default_factory=Rolls)
    """One event of a restart is repeated; the cause of the roll is no longer named."""
    refusals: Refusals = field(default_factory=Refusals)
    """One rejected write is repeated for each component."""
    accepted_settings: AcceptedSettings = field(default_factory=AcceptedSettings)
    """Settings are sent once more."""
    complaints: Complaints = field(default_factory=Complaints)
    """Events of Kubernetes are read once more, after ten seconds."""
    taken_names: TakenNames = field(default_factory=TakenNames)
    """Objects that no cache shows are read once more."""
    settled: Settled = field(default_factory=Settled)
    """Objects are compared once more."""
    decided: Decided = field(default_factory=Decided)
    """All stages decide once more."""
    location_labels: KeptAnswer[tuple[str, ...]] = field(default_factory=KeptAnswer)
    """PD is asked again for its location labels."""
    unheeded: KeptAnswer[Mapping[str, Sequence[Problem]]] = field(default_factory=KeptAnswer)
    """Fields and settings without effect are computed once more."""
    evicted_stores: set[int] = field(default_factory=set)
    """The stores whose leaders this process has moved away. Lost: an eviction without a mark on its pod counts as
    another client's, and is reported instead of ended."""
    evicted_by_others: set[int] = field(default_factory=set)
    """The stores whose eviction by another client was reported in an event. Lost: one event is repeated."""
    without_effect: frozenset[str] = frozenset()
    """The settings of PD that an event has named as without effect. Lost: the event is repeated."""
    silent_stores: dict[int, int] = field(default_factory=dict)
    """The stores that do not answer, with PD's time of their last heartbeat at the first attempt; see `Store`. Lost: a
    silent store holds up restarts until PD has heard from it again."""
    ddl_marks: Mapping[str, str] = field(default_factory=dict)
    """The annotations about paused DDL that were last seen on the TidbCluster or written to it. Lost: they are read
    from the cache."""
    made: dict[str, str] = field(default_factory=dict)
    """The UIDs of the StatefulSets that this process has created, by name. Lost: an edit by another client before the
    first reconcile is searched for as in any older StatefulSet."""
    replaced_in_vain: dict[str, bytes] = field(default_factory=dict)
    """The desired volumes of a component whose replacement produced other ones, by its name. Lost: one more attempt."""
    remade_claims: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Claims deleted for their recreation, by name: the UIDs of StatefulSet and claim, and the requested class and
    size. Lost: the claim is checked as if it had never been recreated."""
