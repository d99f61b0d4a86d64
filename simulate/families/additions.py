"""Changes that v1.6 does not know, under a silence, a loss or a crash.

`addition/new-keys.ticdc-silent@0`: a user gives TiCI's changefeed other keys while TiCDC is silent.
`other-class.crash@7`: TiKV rolls when the class of its volumes changes, and the operator ends right after its seventh
write. `overlay` overlays TiKV and TiDB and withdraws one; `newer` installs an operator whose changes wait, before the
user's next one. `replication.killed@5` and `unreadable.crash@2`: see `log_restores`. `lost-master.crash@1`: a master of
DM without data starts again after failover has removed it from DM, and before its pod is deleted. `graceful` gives
pods hooks with which they stop gracefully, has TiDB say when it is ready, and then rolls TiKV.
"""

from collections.abc import Iterator, Mapping

from apis.graceful_stop import GRACEFUL_STOP
from apis.overlays import overlay_annotation
from apis.ready_endpoints import READY_ENDPOINTS
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS
from simulate.engine import plan as plans
from simulate.engine.other_kinds import DM, made, sources
from simulate.engine.plan import DELETED, Edit, Fault, InvalidPlan, Newer, Plan, World
from simulate.engine.worlds import BESIDE_DM, KEY, NAME, NAMESPACE, ON_EBS
from simulate.families import log_restores
from simulate.families.family import Change, Family, Make, Troubles
from simulate.families.loss_and_edit import DM_CONVERGED

_BEGINS, _MIDWAY, _LATER = 2.0, 12.0, 40.0
"""Seconds after which the user edits, TiKV is in the middle of its roll, and an idle cluster changes again."""
_SILENCE = 60.0
_WRITES = range(1, 25, 3)
"""The numbers of the writes at which a process ends or an answer is lost."""
_BUDGET = 600.0
_LOST, _CRASHES, _INTERRUPTED = 60.0, 40.0, 45.0
"""When a master loses its data, and the seconds for which it crashes, and for which it would crash when it joins."""
_AWAY = 20.0
"""Seconds for which the operator is away, in which the master stops crashing."""

_TIKV, _TIDB = overlay_annotation("tikv"), overlay_annotation("tidb")
_OVERLAY = '{"template":{"spec":{"hostIPC":true}}}'
_ROLL = {"tikv": {"config": {"log": {"level": "warn"}}}}


def _silence(component: str) -> Make:
    arguments = {"target": f"{KEY}-{component}"}
    return lambda _: World(at=_BEGINS / 2, verb="network_cut", arguments=arguments, seconds=_SILENCE)


def _loss(number: int) -> Fault:
    """A TiKV whose process ends again and again, from the middle of its roll."""
    arguments = {"pod": f"{KEY}-tikv-1"}
    return World(at=_MIDWAY + number, verb="pod_crash_loop", arguments=arguments, seconds=_SILENCE)


_TROUBLES: Troubles = {
    "none": (None, (0,)),
    "pd-silent": (_silence("pd-*"), (0,)),
    "tikv-silent": (_silence("tikv-*"), (0,)),
    "lost": (_loss, (0,)),
    "crash": (lambda write: plans.Crash(write=write, when="after"), _WRITES),
    "unanswered": (lambda write: plans.Lost(write=write, when="after"), _WRITES),
}
"""What else happens; silent servers do not answer for a minute."""
_OF_SEARCH: Troubles = {"none": (None, (0,)), "ticdc-silent": (_silence("ticdc-*"), (0,))} | dict(_TROUBLES)

_MASTER = f"{DM}-dm-master-1"
_REMOVAL = f"DELETE *{_MASTER}*"
"""The writes that remove a master from DM, its claim and its pod."""
_LOST_MASTER = Change(
    BESIDE_DM,
    (Edit(at=0.5, delete=f"{TIDB_CLUSTERS}/{NAME}"), made(1.0, DM_CLUSTERS)),
    {
        "none": (None, (0,)),
        "crash": (lambda write: plans.Crash(write=write, of=_REMOVAL, seconds=_AWAY), (1, 2, 3)),
        "unanswered": (lambda write: plans.Lost(write=write, of=_REMOVAL), (1, 2, 3)),
    },
    given=(
        sources(50.0, "orders", "clients"),
        World(at=_LOST, verb="disk_lost", arguments={"namespace": NAMESPACE, "claim": f"dm-master-{_MASTER}"}),
        World(at=_LOST, verb="pod_crash_loop", arguments={"pod": f"{NAMESPACE}/{_MASTER}"}, seconds=_CRASHES),
        World(at=_LOST, verb="join_interrupted", arguments={"pod": f"{NAMESPACE}/{_MASTER}"}, seconds=_INTERRUPTED),
    ),
    ends=DELETED,
    ends_beside={f"{DM_CLUSTERS}/{DM}": DM_CONVERGED},
)
"""Were the master to join again, the others could not let it go, and no other could join."""

_CHANGES: Mapping[str, Change] = {
    "new-keys": Change("searching", (Edit(at=_BEGINS, spec={"tici": {"s3": {"secretKey": "new"}}}),), _OF_SEARCH),
    "other-class": Change(
        ON_EBS,
        (Edit(at=_BEGINS, spec=_ROLL), Edit(at=_MIDWAY, spec={"tikv": {"storageClassName": "fast"}})),
        _TROUBLES,
    ),
    "overlay": Change(
        "small",
        (
            Edit(at=_BEGINS, annotations={_TIKV: _OVERLAY, _TIDB: _OVERLAY}),
            Edit(at=_MIDWAY, annotations={_TIKV: None}),
        ),
        _TROUBLES,
    ),
    "newer": Change("small", (Edit(at=_LATER, spec=_ROLL),), _TROUBLES, (Newer(at=_BEGINS),)),
    "replication": log_restores.REPLICATION,
    "unreadable": log_restores.UNREADABLE,
    "lost-master": _LOST_MASTER,
    "graceful": Change(
        "small",
        (Edit(at=_BEGINS, annotations={GRACEFUL_STOP: "true", READY_ENDPOINTS: "true"}), Edit(at=_LATER, spec=_ROLL)),
        _TROUBLES,
    ),
}
"""New ones come last: sweeps count the plans."""


def _plan(rest: str) -> Plan:
    """The plan called `addition/<rest>`. Raises InvalidPlan."""
    what, _, number = rest.partition("@")
    name, _, trouble = what.partition(".")
    change = _CHANGES.get(name)
    if change is None or trouble not in change.troubles or not number.isdecimal():
        known = "; ".join(f"{name} with {', '.join(each.troubles)}" for name, each in _CHANGES.items())
        raise InvalidPlan(f"{rest!r} is no `CHANGE.TROUBLE@NUMBER` of {known}; the number of a write, 0 without one")
    make, _ = change.troubles[trouble]
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=change.cluster,
        budget=_BUDGET,
        edits=change.edits,
        given=change.given,
        faults=(make(int(number)),) if make else (),
        reference=False,
        ends=change.ends,
        ends_beside=change.ends_beside,
        fulfilled=trouble not in change.may_fail,
    )


def _plans() -> Iterator[Plan]:
    for name, change in _CHANGES.items():
        for trouble, (_, numbers) in change.troubles.items():
            yield from (_plan(f"{name}.{trouble}@{number}") for number in numbers)


FAMILY = Family("addition", _plan, _plans)
