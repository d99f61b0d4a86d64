"""A permanent loss, and an edit meanwhile (reliability.md R21, R24, R28, R29).

`loss/pd-5.two.scale-in@recorded` permanently loses two of five PD members, and scales PD in once the first loss is
recorded. Each plan ends converged, with substitutes for the losses, or with a condition that names a step for the user.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, product

from msgspec.structs import replace

from apis.components import component_type
from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS, DM_CLUSTERS, STATEFUL_SETS, TIDB_CLUSTERS
from simulate.engine.components import profile
from simulate.engine.other_kinds import DM, made, sources, spec_of_kind
from simulate.engine.plan import DELETED, Edit, Fault, Foreign, InvalidPlan, Plan, World
from simulate.engine.trees import merged
from simulate.engine.worlds import ADVANCED, BESIDE_DM, MORTAL_SLOTTED, NAME, NAMESPACE, SETTINGS, SIDECAR
from simulate.families.family import Family
from simulate.families.homes import Home
from simulate.families.users_data import of_all_components
from simulate.invariants.facts import kind_of_record

CONVERGED = ("Done", "PDFailedOver", "TiFlashFailedOver", "TiKVFailedOver", "TiDBFailedOver")
DM_CONVERGED = ("Done", "DMMasterFailedOver", "DMWorkerFailedOver")
"""Reasons with which everything that the spec requires serves; all but the first are about removing substitutes."""

_COPIED = 120.0
"""Seconds after which PD has copied the data of the first of two stores."""
_AWAY = 90.0
"""Seconds until the user undoes a temporary change."""
_BUDGET = 600.0

_VICTIM, _SECOND = 1, 3

_ROLLS = ("image", "config", "hand-edited")
"""Changes that restart pods."""
REFUSED = "refused-image"
"""The change that requires a loss with a substitute."""

_LOST_SUBSTITUTES = {("pd-5", "zone"), ("tikv-4", "two"), ("tikv-slots", "two"), ("tikv-5", "zone")}
"""Losses whose second victim is the first one's substitute once fewer are desired."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A component that suffers a loss and is changed; its replicas, its cluster, and its delete slots."""

    component: str
    replicas: int
    cluster: str
    slots: frozenset[int] = frozenset()

    @property
    def home(self) -> Home:
        """The home of the component, for edits."""
        return Home(self.component, self.cluster)

    @property
    def _name(self) -> str:
        return DM if self.home.is_of_dm else NAME

    @property
    def object(self) -> str:
        """The cluster as plans name it."""
        return self.home.target or f"{TIDB_CLUSTERS}/{NAME}"

    def pod(self, number: int) -> str:
        """The name of a pod; `number` counts from 0 and passes over delete slots."""
        ordinals = (ordinal for ordinal in count() if ordinal not in self.slots)
        return f"{self._name}-{self.component}-{next(islice(ordinals, number, None))}"

    @property
    def volume(self) -> str:
        """The first volume of its pods."""
        return component_type(self.component).data_volume or "data0"

    @property
    def stateful_set(self) -> str:
        """Its StatefulSet as plans name it."""
        resource = ADVANCED_STATEFUL_SETS if self.cluster in ADVANCED else STATEFUL_SETS
        return f"{resource}/{self._name}-{self.component}"

    @property
    def is_replaced(self) -> bool:
        """True if losses get substitutes."""
        return math.isfinite(profile(self.component).failover_period(SETTINGS[self.cluster].failover))

    @property
    def records(self) -> str:
        """The status field with its failure records, as plans name it."""
        return f"{self.object}/status/{self.home.part}/{kind_of_record(self.component)}"

    def made(self, at: float) -> Edit:
        """Create the cluster."""
        if not self.home.is_of_dm:
            return Edit(at=at, create=self.cluster)
        own = {self.home.part: {"replicas": self.replicas, "additionalContainers": [SIDECAR]}}
        return made(at, DM_CLUSTERS, merged(spec_of_kind(DM_CLUSTERS), own))


SUBJECTS: Mapping[str, Subject] = {
    "pd-3": Subject("pd", 3, "mortal-3-3"),
    "pd-5": Subject("pd", 5, "mortal-5-3"),
    "tikv-3": Subject("tikv", 3, "mortal-3-3"),
    "tikv-4": Subject("tikv", 4, "mortal-3-4"),
    "tikv-5": Subject("tikv", 5, "mortal-3-5"),
    "zones-6": Subject("tikv", 6, "mortal-zones"),
    "tidb-2": Subject("tidb", 2, "mortal-tidb"),
    "tiflash-3": Subject("tiflash", 3, "mortal-tiflash"),
    "pump-2": Subject("pump", 2, "mortal-pump"),
    "tiproxy-2": Subject("tiproxy", 2, "mortal-tiproxy"),
    "ticdc-3": Subject("ticdc", 3, "mortal-ticdc"),
    "pd-slots": Subject("pd", 3, MORTAL_SLOTTED, frozenset({1})),
    "tikv-slots": Subject("tikv", 4, MORTAL_SLOTTED, frozenset({1})),
    "dm-master-3": Subject("dm-master", 3, BESIDE_DM),
    "dm-master-5": Subject("dm-master", 5, BESIDE_DM),
    "dm-worker-3": Subject("dm-worker", 3, BESIDE_DM),
}

Loss = Callable[[Subject], tuple[World, ...]]
Change = Callable[[Subject], tuple[Edit | Fault, ...]]


def of_pod(verb: str, hit: Subject, number: int = _VICTIM, at: float = 1.0) -> World:
    """A permanent fault of a pod; for its `number` see `Subject.pod`."""
    return World(at=at, verb=verb, arguments={"pod": f"{NAMESPACE}/{hit.pod(number)}"}, seconds=0.0)


def _volume(hit: Subject) -> tuple[World, ...]:
    """End the process and delete its disk."""
    disk = {"namespace": NAMESPACE, "claim": f"{hit.volume}-{hit.pod(_VICTIM)}"}
    return World(at=1.0, verb="disk_lost", arguments=disk), of_pod("pod_crash", hit)


def _two(hit: Subject) -> tuple[World, ...]:
    """Two at once; for stores the second one after the first one's data is copied, or their regions are lost."""
    second = _COPIED if hit.component == "tikv" else 1.0
    return of_pod("pod_crash_loop", hit), of_pod("pod_crash_loop", hit, _SECOND, second)


def _drained(hit: Subject) -> tuple[World, ...]:
    """Stop the machine, and drain it before its pods are evicted automatically."""
    return of_pod("host_gone", hit), of_pod("host_tainted", hit, at=10.0)


LOSSES: Mapping[str, Loss] = {
    "volume": _volume,
    "node": lambda hit: (of_pod("host_gone", hit),),
    "pod": lambda hit: (of_pod("pod_crash_loop", hit),),
    "two": _two,
    "zone": lambda hit: (of_pod("zone_gone", hit),),
    "removed": lambda hit: (of_pod("host_removed", hit),),
    "tainted": lambda hit: (of_pod("host_tainted", hit),),
    "drained": _drained,
}
"""Permanent losses, a second after the plan begins."""

MACHINES = ("node", "removed", "tainted", "drained")
"""The losses that remove a pod's machine, each differently."""


def _scale(by: int) -> Change:
    return lambda hit: (hit.home.merge(0.0, {"replicas": hit.replicas + by}),)


def _for_a_while(there: Json, back: Json) -> Change:
    return lambda hit: (
        Edit(at=0.0, target=hit.home.target, spec=there),
        Edit(at=_AWAY, target=hit.home.target, spec=back),
    )


def _configured(hit: Subject) -> tuple[Edit]:
    return (hit.home.merge(0.0, {"config": profile(hit.component).config("warn")}),)


def _patched(spec: Callable[[Subject], Json]) -> Change:
    return lambda hit: (Foreign(at=0.0, target=hit.stateful_set, patch={"spec": spec(hit)}),)


def _made_again(hit: Subject) -> tuple[Edit, Edit]:
    return Edit(at=0.0, delete=hit.object), hit.made(_AWAY)


def _removed(hit: Subject) -> tuple[Edit]:
    """Remove a component that serves others."""
    return (Edit(at=0.0, target=hit.home.target, spec={"worker" if hit.home.is_of_dm else "tidb": None}),)


def _refused(hit: Subject) -> tuple[Fault, Edit, Edit]:
    """An image that a policy rejects, undone once the loss has a substitute."""
    old, new = profile(hit.component).versions[:2]
    policy = World(at=0.0, verb="webhook", arguments={"name": "signed-images"}, seconds=0.0)
    back = replace(hit.home.merge(0.0, {"version": old}), at=None, once=f"pods/{hit.pod(hit.replicas)}")
    return policy, hit.home.merge(0.0, {"version": new}), back


CHANGES: Mapping[str, Change] = {
    "scale-out": _scale(1),
    "scale-in": _scale(-1),
    "image": lambda hit: (hit.home.merge(0.0, {"version": profile(hit.component).versions[1]}),),
    "config": _configured,
    REFUSED: _refused,
    "suspend": _for_a_while(
        {"suspendAction": {"suspendStatefulSet": True}}, {"suspendAction": {"suspendStatefulSet": False}}
    ),
    "pause": _for_a_while({"paused": True}, {"paused": False}),
    "hand-scaled": _patched(lambda hit: {"replicas": hit.replicas - 1}),
    "hand-edited": _patched(lambda _: {"template": {"metadata": {"annotations": {"by": "hand"}}}}),
    "hand-deleted": lambda hit: (Edit(at=0.0, delete=hit.stateful_set),),
    "made-again": _made_again,
    "removed": _removed,
}
"""Edits, `at` seconds after the plan's moment."""


MOMENTS: Mapping[str, Callable[[Subject], tuple[float, str]]] = {
    "unrecorded": lambda _: (12.0, ""),
    "recorded": lambda hit: (0.0, hit.records),
    "replaced": lambda hit: (0.0, f"pods/{hit.pod(hit.replicas)}"),
}
"""Their moments: seconds after the plan begins, or once a condition holds."""


def _plan(rest: str) -> Plan:
    """The plan called `loss/<rest>`. Raises InvalidPlan."""
    what, _, moment = rest.partition("@")
    subject, lost, change = (*what.split("."), "", "")[:3]
    if subject not in SUBJECTS or lost not in LOSSES or change not in CHANGES or moment not in MOMENTS:
        raise InvalidPlan(
            f"{rest!r} is no `SUBJECT.LOSS.CHANGE@MOMENT` of {', '.join(SUBJECTS)}; {', '.join(LOSSES)}; "
            f"{', '.join(CHANGES)}; {', '.join(MOMENTS)}"
        )
    hit = SUBJECTS[subject]
    events = changed(hit, change, *MOMENTS[moment](hit))
    return during(f"{FAMILY.name}/{rest}", hit, LOSSES[lost](hit), events, tuple(asks_for(subject, lost, change)))


def changed(hit: Subject, change: str, seconds: float = 12.0, once: str = "") -> Sequence[Edit | Fault]:
    """The events of a change after a number of seconds, or once a condition holds."""
    return [_moved(event, hit.home.begins_at + seconds, once) for event in CHANGES[change](hit)]


def during(
    name: str, hit: Subject, taken: Iterable[Fault], events: Sequence[Edit | Fault], ends: tuple[str, ...]
) -> Plan:
    """A plan with these events during a loss (`taken`); it ends converged, or in one of the `ends`.

    The seconds of the loss count from the plan's start.
    """
    begins = hit.home.begins_at
    plan = Plan(
        name=name,
        cluster=hit.cluster,
        budget=begins + _BUDGET,
        edits=tuple(event for event in events if isinstance(event, Edit)),
        # TiFlash tables would prevent a scale-in; other plans cover them
        given=() if hit.component == "tiflash" else of_all_components(hit.cluster),
        faults=(
            *(fault.postponed(begins) for fault in taken),
            *(event for event in events if not isinstance(event, Edit)),
        ),
        reference=False,
        ends=(*CONVERGED, *ends),
    )
    return _of_dm(plan, hit, (*DM_CONVERGED, *ends)) if hit.home.is_of_dm else plan


def _of_dm(plan: Plan, hit: Subject, ends: tuple[str, ...]) -> Plan:
    """The plan for a DMCluster. No TidbCluster runs beside it, because a lost machine could take its only PD."""
    gone = Edit(at=0.5, delete=f"{TIDB_CLUSTERS}/{NAME}")
    bound = sources(hit.home.begins_at - 10.0, "orders", "clients")
    edits = (gone, hit.made(1.0), *plan.edits)
    return replace(plan, edits=edits, given=(bound,), ends=DELETED, ends_beside={hit.object: ends})


def asks_for(subject: str, lost: str, change: str) -> Iterator[str]:
    """The reasons beside convergence in which a plan may end: each names a step for the user."""
    if change == "scale-in" and (subject, lost) in _LOST_SUBSTITUTES:
        yield "SubstituteLost"
    if change == "made-again" and lost in ("pod", "two"):
        # pods that never were members cannot be replaced, and no other may join beside them
        yield from ("PodsNotReady", "PDUnhealthy", "DMMasterUnhealthy")
    if (subject, lost) == ("tikv-5", "zone") and change in _ROLLS:
        # two stores at once had the majority of some regions: only the user may continue without them
        yield "StoresNotUp"
    if change in ("suspend", "made-again", "hand-scaled", "hand-deleted") and lost in ("node", "zone", "drained"):
        # stuck pods there block their successors and all higher ordinals
        yield "NodeLost"
    if change == "scale-out" and lost in (*MACHINES, "zone"):
        # a pod bound to the machine too early has no data, and cannot move
        yield from ("NodeLost", "PodsNotReady")
    if not SUBJECTS[subject].is_replaced:
        # its data or its place may be on the machine: only the user knows that it is gone for good
        yield from ("PodsNotReady", "RollingUpdate", "RollingUpdateStuck", *(["NodeLost"] if lost in MACHINES else []))
    if lost == "tainted" and change in _ROLLS:
        # its data exists, but it cannot reach it
        yield from ("RollingUpdate", "RollingUpdateStuck")
    if subject == "pump-2" and change == "scale-in":
        # only it has the binlogs that were not read
        yield "PumpUnreachable"
    yield from asked_anyway(subject, change)


def asked_anyway(subject: str, change: str) -> Iterator[str]:
    """The reasons for which a change alone requires a step of the user."""
    if change == "removed":
        yield "ComponentRemoved"
    if (subject, change) == ("tikv-3", "scale-in"):
        # PD keeps three replicas, and no loss needs a substitute any longer
        yield "FailedScaleIn"


def _plans() -> Iterator[Plan]:
    """All sensible combinations."""
    for subject, lost, change, moment in product(SUBJECTS, LOSSES, CHANGES, MOMENTS):
        hit = SUBJECTS[subject]
        if not makes_sense(subject, lost) or (moment != "unrecorded" and not is_recorded(subject, lost)):
            continue
        if change == REFUSED and (moment != "unrecorded" or not (hit.is_replaced and is_recorded(subject, lost))):
            continue
        # nothing is left of removed workers
        if (hit.component, change) != ("dm-worker", "removed"):
            yield _plan(f"{subject}.{lost}.{change}@{moment}")


def makes_sense(subject: str, lost: str) -> bool:
    """True if a loss leaves something to change: two of three is a majority.

    TiDB has no data. For TiFlash, whose learners have none, lost pods and zones are like a lost node; the same holds
    for DM's zone. If PD knows zones, their loss is the point. A component without substitutes loses a pod or its
    machine.
    """
    hit = SUBJECTS[subject]
    if hit.cluster == "mortal-zones":
        return lost == "zone"
    if not hit.is_replaced:
        return lost in (*MACHINES, "pod")
    if lost == "two":
        return hit.replicas > 3
    if hit.component == "tiflash":
        return lost in (*MACHINES, "volume")
    if hit.component == "tidb":
        return lost != "volume"
    return lost != "zone" or not hit.home.is_of_dm


def is_recorded(subject: str, lost: str) -> bool:
    """True if failover records a loss: a DM worker serves without its old disk.

    TiDB, which has no disk, also serves on another machine.
    """
    hit = SUBJECTS[subject]
    moves = hit.component == "tidb" and lost in ("removed", "tainted")
    return hit.is_replaced and (hit.component, lost) != ("dm-worker", "volume") and not moves


def _moved(event: Edit | Fault, seconds: float, once: str) -> Edit | Fault:
    """An event at the plan's moment plus its `at`."""
    if event.once:
        return event
    return replace(event, at=None, once=once, later=event.at or 0.0) if once else event.postponed(seconds)


FAMILY = Family("loss", _plan, _plans)
