"""A loss that ends after an edit (lifecycle.md F29, reliability.md R21, R24).

`return/tikv-4.node.config@recorded+150` is `loss/tikv-4.node.config@recorded` with a machine that returns after 150
seconds: before its substitute serves, beside it, or long after it. Nothing may stay unfinished.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from simulate.engine.plan import DELETED, Fault, InvalidPlan, Plan, World, reasons
from simulate.families import loss_and_edit
from simulate.families.family import Family
from simulate.families.loss_and_edit import CONVERGED, DM_CONVERGED

_AFTER: Mapping[str, tuple[float, ...]] = {
    "unrecorded": (20.0, 60.0, 150.0, 300.0),
    "recorded": (150.0, 300.0),
    "replaced": (150.0, 300.0),
}
"""Seconds from the loss to the return, by the moment of the change, which must come earlier."""
_COMES_BACK = {"pod_crash_loop", "host_gone", "zone_gone", "host_removed", "host_tainted"}
"""The losses that can end; a disk cannot return."""
_MORE = 200.0
"""Additional seconds beside the loss's."""
_ENDS = {*CONVERGED, *DM_CONVERGED, "ComponentRemoved", "FailedScaleIn"}


def _plan(rest: str) -> Plan:
    """The plan called `return/<rest>`. Raises InvalidPlan."""
    lost, _, after = rest.rpartition("+")
    if not after.isdecimal():
        raise InvalidPlan(f"{rest!r} is no `SUBJECT.LOSS.CHANGE@MOMENT+SECONDS`")
    base = loss_and_edit.FAMILY.plan(lost)
    faults = tuple(_undone(fault, float(after)) for fault in base.faults)
    if faults == base.faults:
        raise InvalidPlan(f"{lost!r} loses nothing that could return")
    return replace(
        base,
        name=f"{FAMILY.name}/{rest}",
        faults=faults,
        budget=base.budget + float(after) + _MORE,
        ends=base.ends if base.ends == DELETED else _converged(base.ends),
        ends_beside={name: _converged(ends) for name, ends in base.ends_beside.items()},
    )


def _undone(fault: Fault, after: float) -> Fault:
    return replace(fault, seconds=after) if isinstance(fault, World) and fault.verb in _COMES_BACK else fault


def _converged(ends: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(reason for reason in reasons(ends) if reason in _ENDS)


def _plans() -> Iterator[Plan]:
    for base in loss_and_edit.FAMILY.plans():
        lost = base.name.partition("/")[2]
        # a disk does not return, and some changes wait for a substitute
        if ".volume." not in lost and f".{loss_and_edit.REFUSED}@" not in lost:
            yield from (_plan(f"{lost}+{after:g}") for after in _AFTER[lost.partition("@")[2]])


FAMILY = Family("return", _plan, _plans)
