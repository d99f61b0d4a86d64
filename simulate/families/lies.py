"""Servers that lie in the documented form for minutes, alone or during a change (docs/security.md, data planes).

`lie/store-is-tombstone.follower.tikv-in`: one PD member that does not lead reports a store as Tombstone while TiKV is
scaled in. `all`: the whole of PD lies, `leader`: its leader, `turns`: every second answer. Another cluster runs beside;
`simulate.judge.lies` says what a lie may cost.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from simulate.engine.plan import Edit, Fault, InvalidPlan, Lying, Plan, World
from simulate.engine.worlds import KEY, NAMESPACE
from simulate.families.family import Family
from simulate.families.loss_and_edit import CONVERGED, DM_CONVERGED, SUBJECTS, Subject, changed, of_pod

_BEGINS, _LASTS = 5.0, 240.0
"""Seconds: longer than failovers of these clusters take."""
_AFTERWARDS = 360.0
_CHANGED_AT = 15.0

CALM = "calm/quiet"
"""The other cluster."""

_OF_STORES = (
    "store-is-tombstone",
    "store-is-offline",
    "store-is-down",
    "stores-are-up",
    "store-is-missing",
    "no-stores",
    "stores-are-swapped",
    "store-of-another-cluster",
    "store-is-there-twice",
    "stores-are-empty",
    "stores-grow",
    "stores-are-ancient",
    "stores-are-of-tomorrow",
    "stores-have-another-version",
    "leaders-are-evicted",
    "no-leaders-are-evicted",
    "one-replica",
)
_OF_MEMBERS = (
    "leader-is-a-stranger",
    "leader-is-missing",
    "another-leads",
    "two-lead",
    "member-is-missing",
    "member-is-forgotten",
    "member-is-there-twice",
    "member-of-another-cluster",
    "members-are-healthy",
    "member-is-dead",
    "members-are-dead",
    "another-cluster",
)
_OF_DM = ("dm-leader-is-a-stranger", "dm-member-is-missing", "dm-member-is-dead", "dm-members-are-well")

WHO = ("all", "leader", "follower", "turns")
"""Which members of PD lie."""
_ONE = "one"
"""The liar is the server of the pod itself."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What happens to the cluster of a subject while servers lie; `about` is the ordinal that the lie is about."""

    subject: Subject
    about: int
    events: Callable[[Subject], tuple[Edit | Fault, ...]] = field(default=lambda _: ())
    ends: tuple[str, ...] = ()

    @property
    def pod(self) -> str:
        """The pod that the lie is about."""
        return self.subject.pod(self.about)


def _change(change: str) -> Callable[[Subject], tuple[Edit | Fault, ...]]:
    return lambda hit: tuple(changed(hit, change, _CHANGED_AT))


def _slow_scale_in(hit: Subject) -> tuple[Edit | Fault, ...]:
    """A scale-in whose store has regions as long as servers lie."""
    frozen = World(at=_CHANGED_AT - 1.0, verb="regions_frozen", arguments={"cluster": KEY}, seconds=_LASTS)
    return (frozen, *_change("scale-in")(hit))


def _lost(hit: Subject) -> tuple[Fault, ...]:
    begins = hit.home.begins_at
    return (of_pod("host_gone", hit, at=begins + _CHANGED_AT),)


_TIKV, _PD, _DM_MASTER, _DM_WORKER = (SUBJECTS[each] for each in ("tikv-4", "pd-5", "dm-master-5", "dm-worker-3"))

SITUATIONS: Mapping[str, Situation] = {
    "rest": Situation(_TIKV, 1),
    "tikv-in": Situation(_TIKV, 3, _slow_scale_in),
    "tikv-in-beside": Situation(_TIKV, 1, _change("scale-in")),
    "tikv-roll": Situation(_TIKV, 1, _change("config")),
    "tikv-lost": Situation(_TIKV, 1, _lost),
    "tikv-lost-beside": Situation(_TIKV, 2, _lost),
    "pd-rest": Situation(_PD, 1),
    "pd-in": Situation(_PD, 4, _change("scale-in")),
    "pd-in-beside": Situation(_PD, 1, _change("scale-in")),
    "pd-roll": Situation(_PD, 1, _change("config")),
    "pd-lost": Situation(_PD, 1, _lost),
    "pd-lost-beside": Situation(_PD, 2, _lost),
    "tidb-roll": Situation(SUBJECTS["tidb-2"], 1, _change("config")),
    "ticdc-roll": Situation(SUBJECTS["ticdc-3"], 1, _change("config")),
    "ticdc-in": Situation(SUBJECTS["ticdc-3"], 2, _change("scale-in")),
    "tiproxy-roll": Situation(SUBJECTS["tiproxy-2"], 1, _change("config")),
    "dm-rest": Situation(_DM_MASTER, 1),
    "dm-master-in": Situation(_DM_MASTER, 4, _change("scale-in")),
    "dm-master-lost": Situation(_DM_MASTER, 2, _lost),
    "dm-worker-in": Situation(_DM_WORKER, 2, _change("scale-in")),
    "dm-worker-lost": Situation(_DM_WORKER, 2, _lost),
}

_MATTERS_IN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_OF_STORES, ("rest", "tikv-in", "tikv-in-beside", "tikv-roll", "tikv-lost", "tikv-lost-beside")),
    **dict.fromkeys(_OF_MEMBERS, ("pd-rest", "pd-in", "pd-in-beside", "pd-roll", "pd-lost", "pd-lost-beside")),
    **dict.fromkeys(("leads-nothing", "leads-ever-more"), ("rest", "tikv-in", "tikv-roll")),
    "serves-nothing": ("tidb-roll", "tiproxy-roll", "ticdc-roll"),
    "owns-all": ("tidb-roll", "ticdc-roll", "ticdc-in"),
    "owns-nothing": ("tidb-roll", "ticdc-roll", "ticdc-in"),
    "no-captures": ("ticdc-roll", "ticdc-in"),
    **dict.fromkeys(_OF_DM, ("dm-rest", "dm-master-in", "dm-master-lost", "dm-worker-in", "dm-worker-lost")),
}
"""The situations in which each lie may matter."""


def _liars(lie: str) -> tuple[str, ...]:
    if lie in (*_OF_STORES, *_OF_MEMBERS):
        return WHO
    return ("all", "one", "turns") if lie in _OF_DM else (_ONE, "all")


def _fault(lie: str, who: str, situation: Situation) -> World:
    """The lie itself."""
    hit = situation.subject
    arguments = {"lie": lie, "about": situation.pod, "every": 2 if who == "turns" else 1}
    at = hit.home.begins_at + _BEGINS
    if lie in (*_OF_STORES, *_OF_MEMBERS):
        whose = {"cluster": KEY, "who": "all" if who == "turns" else who}
        return World(at=at, verb="pd_lies", arguments=arguments | whose, seconds=_LASTS, if_there=True)
    liar = f"{hit.pod(0).removesuffix(f'-{hit.component}-0')}-dm-master" if lie in _OF_DM else hit.pod(0)[:-2]
    target = situation.pod if who == _ONE and lie not in _OF_DM else f"{liar}-{'0' if who == _ONE else '*'}"
    return World(at=at, verb="server_lies", arguments=arguments | {"target": f"{NAMESPACE}/{target}"}, seconds=_LASTS)


def _plan(rest: str) -> Plan:
    """The plan called `lie/<rest>`. Raises InvalidPlan."""
    lie, who, where = (*rest.split("."), "", "")[:3]
    if where not in _MATTERS_IN.get(lie, ()) or who not in _liars(lie):
        raise InvalidPlan(f"{rest!r} is no `LIE.WHO.SITUATION`; the lies are {', '.join(_MATTERS_IN)}")
    situation = SITUATIONS[where]
    hit = situation.subject
    begins, events = hit.home.begins_at + _BEGINS, situation.events(hit)
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=hit.cluster,
        budget=begins + _LASTS + _AFTERWARDS,
        edits=(*hit.home.made, *(event for event in events if isinstance(event, Edit))),
        given=tuple(event for event in events if not isinstance(event, Edit)),
        faults=(_fault(lie, who, situation),),
        reference=False,
        ends=CONVERGED,
        ends_beside={hit.home.target: DM_CONVERGED} if hit.home.is_of_dm else {},
        neighbours={CALM: "tiny"},
        lying=Lying(begins=begins, ends=begins + _LASTS, authority=who not in ("follower", _ONE)),
    )


def _plans() -> Iterator[Plan]:
    for lie, situations in _MATTERS_IN.items():
        for who, where in product(_liars(lie), situations):
            yield _plan(f"{lie}.{who}.{where}")


FAMILY = Family("lie", _plan, _plans)
