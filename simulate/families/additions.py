"""Changes that v1.6 does not know, under a silence, a loss or a crash.

`addition/new-keys.ticdc-silent@0`: a user gives TiCI's changefeed other keys while TiCDC is silent.
`other-class.crash@7`: TiKV rolls when the class of its volumes changes, and the operator ends right after its seventh
write. `overlay` overlays TiKV and TiDB and withdraws one; `newer` installs an operator whose changes wait, before the
user's next one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from apis.overlays import overlay_annotation
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Fault, InvalidPlan, Newer, Plan, World
from simulate.engine.worlds import KEY, ON_EBS
from simulate.families.family import Family

_BEGINS, _MIDWAY, _LATER = 2.0, 12.0, 40.0
"""Seconds after which the user edits, TiKV is in the middle of its roll, and an idle cluster changes again."""
_SILENCE = 60.0
_WRITES = range(1, 25, 3)
"""The numbers of the writes at which a process ends or an answer is lost."""
_BUDGET = 600.0

_TIKV, _TIDB = overlay_annotation("tikv"), overlay_annotation("tidb")
_OVERLAY = '{"template":{"spec":{"hostIPC":true}}}'
_ROLL = {"tikv": {"config": {"log": {"level": "warn"}}}}


@dataclass(frozen=True, slots=True)
class _Base:
    """A cluster and its user's edits; `given` is what its administrator does."""

    cluster: str
    edits: tuple[Edit, ...]
    given: tuple[Fault, ...] = field(default=())


_BASES: Mapping[str, _Base] = {
    "new-keys": _Base("searching", (Edit(at=_BEGINS, spec={"tici": {"s3": {"secretKey": "new"}}}),)),
    "other-class": _Base(
        ON_EBS,
        (Edit(at=_BEGINS, spec=_ROLL), Edit(at=_MIDWAY, spec={"tikv": {"storageClassName": "fast"}})),
    ),
    "overlay": _Base(
        "small",
        (
            Edit(at=_BEGINS, annotations={_TIKV: _OVERLAY, _TIDB: _OVERLAY}),
            Edit(at=_MIDWAY, annotations={_TIKV: None}),
        ),
    ),
    "newer": _Base("small", (Edit(at=_LATER, spec=_ROLL),), (Newer(at=_BEGINS),)),
}


def _silence(component: str) -> Callable[[int], Fault]:
    arguments = {"target": f"{KEY}-{component}"}
    return lambda _: World(at=_BEGINS / 2, verb="network_cut", arguments=arguments, seconds=_SILENCE)


def _loss(number: int) -> Fault:
    """A TiKV whose process ends again and again, from the middle of its roll."""
    arguments = {"pod": f"{KEY}-tikv-1"}
    return World(at=_MIDWAY + number, verb="pod_crash_loop", arguments=arguments, seconds=_SILENCE)


_TROUBLES: Mapping[str, Callable[[int], Fault] | None] = {
    "none": None,
    "ticdc-silent": _silence("ticdc-*"),
    "pd-silent": _silence("pd-*"),
    "tikv-silent": _silence("tikv-*"),
    "lost": _loss,
    "crash": lambda write: plans.Crash(write=write, when="after"),
    "unanswered": lambda write: plans.Lost(write=write, when="after"),
}
"""What else happens; silent servers do not answer for a minute."""


def _plan(rest: str) -> Plan:
    """The plan called `addition/<rest>`. Raises InvalidPlan."""
    what, _, number = rest.partition("@")
    name, _, trouble = what.partition(".")
    if name not in _BASES or trouble not in _TROUBLES or not number.isdecimal():
        known = f"{', '.join(_BASES)}; {', '.join(_TROUBLES)}"
        raise InvalidPlan(f"{rest!r} is no `CHANGE.TROUBLE@WRITE` of {known}; the number of a write, 0 without one")
    base, make = _BASES[name], _TROUBLES[trouble]
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=base.cluster,
        budget=_BUDGET,
        edits=base.edits,
        given=base.given,
        faults=(make(int(number)),) if make else (),
        reference=False,
        fulfilled=True,
    )


def _plans() -> Iterator[Plan]:
    for name, base in _BASES.items():
        for trouble in _TROUBLES:
            if trouble != "ticdc-silent" or base.cluster == "searching":
                numbers = _WRITES if trouble in ("crash", "unanswered") else (0,)
                yield from (_plan(f"{name}.{trouble}@{number}") for number in numbers)


FAMILY = Family("addition", _plan, _plans)
