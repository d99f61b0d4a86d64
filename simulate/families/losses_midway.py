"""A permanent loss in the middle of a change (reliability.md R21, R24, R28).

`midway/tikv-4.config+8.node` changes the configuration, and loses a pod's machine eight seconds later: before the pod
is restarted, during its restart, or during others'. It ends like a plan whose loss comes first
(`simulate.families.loss_and_edit`).
"""

from collections.abc import Iterator
from itertools import product

from msgspec.structs import replace

from simulate.engine.plan import InvalidPlan, Plan
from simulate.families.family import Family
from simulate.families.loss_and_edit import LOSSES, SUBJECTS, asks_for, changed, during, makes_sense

_CHANGES = ("scale-out", "scale-in", "image", "config", "hand-edited", "hand-deleted")
"""Changes that take time."""
_AFTER = (2.0, 5.0, 10.0, 20.0, 45.0)
"""Seconds from the change to the loss."""


def _plan(rest: str) -> Plan:
    """The plan called `midway/<rest>`. Raises InvalidPlan."""
    what, _, loss = rest.partition("+")
    subject, _, change = what.partition(".")
    after, _, lost = loss.partition(".")
    if subject not in SUBJECTS or change not in _CHANGES or not after.isdecimal() or lost not in LOSSES:
        raise InvalidPlan(
            f"{rest!r} is no `SUBJECT.CHANGE+SECONDS.LOSS` of {', '.join(SUBJECTS)}; {', '.join(_CHANGES)}; seconds "
            f"from the change to the loss; {', '.join(LOSSES)}"
        )
    hit = SUBJECTS[subject]
    # a scaled-in or restarting pod has nothing to lose
    taken = [replace(fault.postponed(float(after)), if_there=True) for fault in LOSSES[lost](hit)]
    ends = (*asks_for(subject, lost, change), *_without_quorum(subject, lost, change))
    return during(f"{FAMILY.name}/{rest}", hit, taken, changed(hit, change, 1.0), ends)


def _without_quorum(subject: str, lost: str, change: str) -> Iterator[str]:
    """The reasons if a loss takes half of the members that a scale-in has left."""
    of_pd, of_dm = subject.startswith("pd-"), subject.startswith("dm-master-")
    if change == "scale-in" and (SUBJECTS[subject].replicas == 3 or lost in ("two", "zone")) and (of_pd or of_dm):
        yield "PDQuorumLost" if of_pd else "DMMasterQuorumLost"


def _plans() -> Iterator[Plan]:
    for subject, change, after, lost in product(SUBJECTS, _CHANGES, _AFTER, LOSSES):
        if makes_sense(subject, lost):
            yield _plan(f"{subject}.{change}+{after:g}.{lost}")


FAMILY = Family("midway", _plan, _plans)
