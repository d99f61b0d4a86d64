"""An object refers into another namespace whose owner consents, withdraws, deletes the target (docs/security.md).

In `consent/monitor/withdrawn/edited/stale/crash-after-3` a TidbMonitor names a cluster of another namespace. Its owner
consents, and withdraws. At that moment the author changes the monitor's spec, and the operator's cache of the cluster
is stale. The operator crashes after its third write for the monitor. `none` stands for no edit, no lag and no crash.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from apis.consent import ALLOWED_FROM
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DM_CLUSTERS,
    SECRETS,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from ports.randomness import SeededRandomness
from simulate.engine import plan as plans
from simulate.engine.other_kinds import DM, spec_of_kind
from simulate.engine.plan import CrossReference, Edit, InvalidPlan, Permits, Plan
from simulate.engine.worlds import CLUSTERS, NAME, NAMESPACE
from simulate.families.draws import pick
from simulate.families.family import Family

_AUTHOR, _NAME = "author", "eve"
_CLUSTER = "mix+tls"
_THERE: Json = {"name": NAME, "namespace": NAMESPACE}
_RULES = "rules"
_OF_AUTHOR: Json = {"name": "own"}
"""A cluster of the author, which exists where a source needs it."""

_BROUGHT_UP = 20.0
"""Seconds after which the author's object serves if nothing keeps it from that."""
_SETTLES = 90.0
"""Seconds after the last event."""
_LAG = 20.0
_WRITES = 12
"""The most writes for the author's object in one history."""

Event = Edit | plans.Fault
_Act = Callable[[float], Event]


def _patched(resource: Resource, name: str, annotation: str | None) -> _Act:
    return lambda at: Edit(at=at, target=f"{resource}/{name}", annotations={ALLOWED_FROM: annotation})


def _made(resource: Resource, name: str, body: Json) -> _Act:
    return lambda at: Edit(at=at, target=f"{resource}/{name}", body=body)


@dataclass(frozen=True, slots=True)
class _Target:
    """An object of the owner. `make` recreates it without consent; `before` creates what the plan's world lacks."""

    resource: Resource
    name: str
    make: _Act
    before: tuple[Event, ...] = ()

    def act(self, verb: str, at: float) -> Event:
        """What the owner does, or the administrator (`allow`, `restrict`)."""
        acts: Mapping[str, _Act] = {
            "give": _patched(self.resource, self.name, f"third, {_AUTHOR}"),
            "take": _patched(self.resource, self.name, None),
            "give others": _patched(self.resource, self.name, "third"),
            "delete": lambda at: Edit(at=at, delete=f"{self.resource}/{self.name}"),
            "make": self.make,
            "allow": lambda at: Permits(at=at, flag="allow"),
            "restrict": lambda at: Permits(at=at, flag="consent"),
        }
        return acts[verb](at)


_TIDB = _Target(TIDB_CLUSTERS, NAME, lambda at: Edit(at=at, create=_CLUSTER))

_RULES_BODY: Json = {"data": {"prometheus-config": "# the rules of the owner alone\nglobal: {}\n"}}
_CONFIG = _Target(
    CONFIG_MAPS,
    _RULES,
    _made(CONFIG_MAPS, _RULES, _RULES_BODY),
    (_made(CONFIG_MAPS, _RULES, _RULES_BODY)(0.2),),
)

_DM_SPEC: Json = spec_of_kind(DM_CLUSTERS) | {"paused": True, "tlsCluster": {"enabled": True}}
_PEM = "LS0tLS1CRUdJTi0tLS0tCnByaXZhdGUta2V5LW9mLWRtCi0tLS0tRU5ELS0tLS0K"
_DM_SECRET: Json = {"data": dict.fromkeys(("ca.crt", "tls.crt", "tls.key"), _PEM)}
_MAKE_DM = _made(DM_CLUSTERS, DM, {"spec": _DM_SPEC})
_DM = _Target(DM_CLUSTERS, DM, _MAKE_DM, (_made(SECRETS, f"{DM}-dm-client-secret", _DM_SECRET)(0.2), _MAKE_DM(0.2)))


@dataclass(frozen=True, slots=True)
class _Source:
    """An object of the author: its spec, a change of it that keeps the reference, and one that drops it.

    `before` is what it needs in the author's namespace.
    """

    resource: Resource
    target: _Target
    spec: Json
    edited: Json
    left: Json = field(default_factory=lambda: {"clusters": [_OF_AUTHOR]})
    before: tuple[Edit, ...] = ()

    @property
    def key(self) -> str:
        """The object as `plural.group/name`."""
        return f"{self.resource}/{_NAME}"


_MONITOR = spec_of_kind(TIDB_MONITORS)
_PAUSED: Json = CLUSTERS["tiny"]()["spec"] | {"paused": True}
_OF_MONITOR: Json = {"externalLabels": {"region": "north"}}

_SOURCES: Mapping[str, _Source] = {
    "monitor": _Source(TIDB_MONITORS, _TIDB, _MONITOR | {"clusters": [_THERE]}, _OF_MONITOR),
    "monitor-of-dm": _Source(
        TIDB_MONITORS,
        _DM,
        _MONITOR
        | {"clusters": [], "dm": {"clusters": [_THERE | {"name": DM}], "initializer": _MONITOR["initializer"]}},
        _OF_MONITOR,
        {"dm": {"clusters": [_OF_AUTHOR]}},
    ),
    "configuration": _Source(
        TIDB_MONITORS,
        _CONFIG,
        _MONITOR
        | {
            "clusters": [_OF_AUTHOR],
            "prometheus": _MONITOR["prometheus"] | {"config": {"configMapRef": _THERE | {"name": _RULES}}},
        },
        _OF_MONITOR,
        {"prometheus": {"config": None}},
        (Edit(at=0.5, target=f"{TIDB_CLUSTERS}/own", namespace=_AUTHOR, body={"spec": _PAUSED}),),
    ),
    "dashboard": _Source(
        TIDB_DASHBOARDS, _TIDB, spec_of_kind(TIDB_DASHBOARDS) | {"clusters": [_THERE]}, {"labels": {"team": "a"}}
    ),
    "ng-monitoring": _Source(
        TIDB_NG_MONITORINGS,
        _TIDB,
        spec_of_kind(TIDB_NG_MONITORINGS) | {"clusters": [_THERE]},
        {"labels": {"team": "a"}},
    ),
}


@dataclass(frozen=True, slots=True)
class _History:
    """What happens to the permission, by seconds, and what the author's object must show and say in the end."""

    steps: tuple[tuple[float, str], ...]
    shows: bool
    waits: bool
    is_upgrade: bool = False


_GIVEN, _TAKEN, _AGAIN = (5.0, "give"), (50.0, "take"), (90.0, "give")
_DELETED, _MADE = (50.0, "delete"), (90.0, "make")
_OPEN, _RESTRICTED = (0.1, "allow"), (60.0, "restrict")

_HISTORIES: Mapping[str, _History] = {
    "never": _History((), shows=False, waits=True),
    "given": _History((_GIVEN,), shows=True, waits=False),
    "withdrawn": _History((_GIVEN, _TAKEN), shows=False, waits=True),
    "given-to-others": _History((_GIVEN, (50.0, "give others")), shows=False, waits=True),
    "given-again": _History((_GIVEN, _TAKEN, _AGAIN), shows=True, waits=False),
    "deleted": _History((_GIVEN, _DELETED), shows=False, waits=True),
    "made-again": _History((_GIVEN, _DELETED, _MADE), shows=False, waits=True),
    "made-again-and-given": _History((_GIVEN, _DELETED, _MADE, (130.0, "give")), shows=True, waits=False),
    "upgraded": _History((_OPEN, _RESTRICTED), shows=True, waits=True, is_upgrade=True),
    "upgraded-and-given": _History((_OPEN, _RESTRICTED, _AGAIN), shows=True, waits=False, is_upgrade=True),
    "upgraded-and-withdrawn": _History((_OPEN, _RESTRICTED, _AGAIN, (130.0, "take")), shows=False, waits=True),
}

_EDITS = ("none", "edited", "left", "removed")
_LAGS: Mapping[str, type[plans.Stale | plans.Hidden] | None] = {
    "none": None,
    "stale": plans.Stale,
    "hidden": plans.Hidden,
    "blind": plans.Stale,
}
"""`blind`: all caches are stale; otherwise the cache of the target's kind."""
_OWN = f"*{_NAME}*"
"""The pattern of the targets of writes for the author's object."""
_FAULTS: Mapping[str, Callable[[int], plans.Fault]] = {
    "crash-after": lambda number: plans.Crash(write=number, of=_OWN, when="after"),
    "lost": lambda number: plans.Lost(write=number, of=_OWN),
}


def _plan(rest: str) -> Plan:
    """The plan called `consent/<rest>`. Raises InvalidPlan."""
    named, past, edit, lag, fault = (*rest.split("/"), *[""] * 5)[:5]
    if named not in _SOURCES or past not in _HISTORIES or edit not in _EDITS or lag not in _LAGS:
        raise _unknown(rest)
    source, history = _SOURCES[named], _HISTORIES[past]
    last = max([_BROUGHT_UP, *(at for at, _ in history.steps)])
    events = [
        *source.target.before,
        *source.before,
        Edit(at=1.0, target=source.key, namespace=_AUTHOR, body={"spec": source.spec}),
        *(source.target.act(verb, at) for at, verb in history.steps),
        *_edits(source, edit, last + 0.5),
        *_blinded(source, lag, last - 1.0),
        *_faults(rest, fault),
    ]
    is_deleted = source.target is _TIDB and history.steps[-1:] == (_DELETED,)
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=_CLUSTER,
        budget=last + _SETTLES,
        edits=tuple(event for event in events if isinstance(event, Edit)),
        faults=tuple(event for event in events if not isinstance(event, Edit)),
        reference=False,
        ends=plans.DELETED if is_deleted else "Done",
        ends_beside={f"{DM_CLUSTERS}/{DM}": "*"} if source.target is _DM else {},
        across=_end(source, history, edit),
    )


def _unknown(rest: str) -> InvalidPlan:
    return InvalidPlan(
        f"{rest!r} is no `SOURCE/HISTORY/EDIT/LAG/FAULT` of {', '.join(_SOURCES)}; {', '.join(_HISTORIES)}; "
        f"{', '.join(_EDITS)}; {', '.join(_LAGS)}; none, {', '.join(f'{each}-N' for each in _FAULTS)}"
    )


def _end(source: _Source, history: _History, edit: str) -> CrossReference:
    """What the author's object must show and say in the end."""
    is_referring = edit in ("none", "edited")
    # a copy without a mark does not say where it is from: it stays until another cluster can be served
    is_unmarked = history.is_upgrade and edit == "left" and source.resource != TIDB_MONITORS
    return CrossReference(
        source=source.key,
        namespace=_AUTHOR,
        shows=None if is_unmarked else history.shows and is_referring,
        waits=history.waits and is_referring,
        serves_from=_RESTRICTED[0] - 1.0 if history.is_upgrade and edit == "none" else 0.0,
    )


def _edits(source: _Source, edit: str, at: float) -> list[Edit]:
    """What the author does with the object at a moment."""
    if edit == "removed":
        return [Edit(at=at, delete=source.key, namespace=_AUTHOR)]
    specs = {"edited": source.edited, "left": source.left}
    return [Edit(at=at, target=source.key, namespace=_AUTHOR, spec=specs[edit])] if edit in specs else []


def _blinded(source: _Source, lag: str, at: float) -> list[plans.Fault]:
    """Caches that lag from a moment on."""
    how, caches = _LAGS[lag], () if lag == "blind" else (str(source.target.resource),)
    return [how(at=at, caches=caches, seconds=_LAG)] if how else []


def _faults(rest: str, fault: str) -> list[plans.Fault]:
    """What happens at a write. Raises InvalidPlan."""
    kind, _, number = fault.rpartition("-")
    if fault != "none" and (kind not in _FAULTS or not number.isdecimal()):
        raise _unknown(rest)
    return [] if fault == "none" else [_FAULTS[kind](int(number))]


def _plans() -> Iterator[Plan]:
    """Each history of each source under each edit and lag; and a crash or a lost answer at each write, under some."""
    for parts in product(_SOURCES, _HISTORIES, _EDITS, _LAGS):
        yield _plan("/".join((*parts, "none")))
    draw = SeededRandomness(FAMILY.name)
    for source, history, fault, number in product(_SOURCES, _HISTORIES, _FAULTS, range(1, _WRITES + 1)):
        edit, lag = pick(draw, _EDITS), pick(draw, list(_LAGS))
        yield _plan(f"{source}/{history}/{edit}/{lag}/{fault}-{number}")


FAMILY = Family("consent", _plan, _plans)
