"""What is remembered of one cluster, of whatever kind, from one reconcile to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apis.problem import Problem
from kube.taken_names import TakenNames
from member.memory.accepted_settings import AcceptedSettings
from member.memory.complaints import Complaints
from member.memory.decided import Decided
from member.memory.failure_timers import FailureTimers
from member.memory.kept_answer import KeptAnswer
from member.memory.refusals import Refusals
from member.memory.rolls import Rolls
from member.memory.settled import Settled
from member.memory.stopwatches import Stopwatches


@dataclass(slots=True)
class ClusterMemory:
    """One for each cluster; a stage may change what is in it, and nobody else reads it."""

    failure_timers: FailureTimers = field(default_factory=FailureTimers)
    accepted_settings: AcceptedSettings = field(default_factory=AcceptedSettings)
    stopwatches: Stopwatches = field(default_factory=Stopwatches)
    rolls: Rolls = field(default_factory=Rolls)
    refusals: Refusals = field(default_factory=Refusals)
    complaints: Complaints = field(default_factory=Complaints)
    taken_names: TakenNames = field(default_factory=TakenNames)
    settled: Settled = field(default_factory=Settled)
    decided: Decided = field(default_factory=Decided)
    location_labels: KeptAnswer[tuple[str, ...]] = field(default_factory=KeptAnswer)
    evicted_stores: set[int] = field(default_factory=set)
    """The stores whose leaders were moved away for us, as far as this process knows."""
    evicted_by_others: set[int] = field(default_factory=set)
    """The stores of which an event has told that others have their leaders moved away."""
    without_effect: frozenset[str] = frozenset()
    """The settings of PD of which an event has told that they have no effect."""
    unheeded: KeptAnswer[Mapping[str, Sequence[Problem]]] = field(default_factory=KeptAnswer)
    silent_stores: dict[int, int] = field(default_factory=dict)
    """The stores that do not answer, and when PD had heard from each of them as it was asked first; see `Store`."""
    ddl_marks: Mapping[str, str] = field(default_factory=dict)
    """What was last seen on the TidbCluster, or written to it, of an upgrade for which DDL is paused."""
    made: dict[str, str] = field(default_factory=dict)
    """The UIDs of the StatefulSets that this process has made, by name."""
    replaced_in_vain: dict[str, bytes] = field(default_factory=dict)
    """What was wanted of the volumes of a component when new ones came out otherwise, by its name."""
    remade_claims: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Claims that were deleted to be made again, by name: the UIDs of StatefulSet and claim, and what it asked for."""
