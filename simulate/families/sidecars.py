"""A user's container that cannot start beside a server, and an edit (objects.md 3.5, R24).

`sidecar/tikv-4.config+90` restarts a pod whose second container has an image that is missing for 90 seconds, and
changes the configuration meanwhile. The server runs all the time: nothing replaces it, and none of its data is lost.
"""

from collections.abc import Iterator
from itertools import product

from msgspec.structs import replace

from simulate.engine.plan import Fault, InvalidPlan, Plan, World
from simulate.engine.worlds import SIDECAR
from simulate.families.family import Family
from simulate.families.loss_and_edit import CHANGES, REFUSED, SUBJECTS, Subject, asked_anyway, changed, during, of_pod

_AFTER = (20.0, 90.0, 300.0)
"""Seconds until the image can be pulled again: before, during and after the replacement of a lost pod."""


def _plan(rest: str) -> Plan:
    """The plan called `sidecar/<rest>`. Raises InvalidPlan."""
    what, _, after = rest.partition("+")
    subject, _, change = what.partition(".")
    if subject not in SUBJECTS or change not in CHANGES or not after.isdecimal():
        raise InvalidPlan(
            f"{rest!r} is no `SUBJECT.CHANGE+SECONDS` of {', '.join(SUBJECTS)}; {', '.join(CHANGES)}; seconds until "
            "the image is there again"
        )
    hit = SUBJECTS[subject]
    taken, events = _kept_out(hit, float(after)), changed(hit, change)
    plan = during(f"{FAMILY.name}/{rest}", hit, taken, events, tuple(asked_anyway(subject, change)))
    return replace(plan, budget=plan.budget + float(after))


def _kept_out(hit: Subject, after: float) -> Iterator[Fault]:
    """Recreate a pod of which one container cannot start."""
    yield World(at=1.0, verb="image_missing", arguments={"image": SIDECAR["image"]}, seconds=after)
    yield of_pod("pod_evicted", hit)


def _plans() -> Iterator[Plan]:
    changes = [change for change in CHANGES if change != REFUSED]
    return (_plan(f"{subject}.{change}+{after:g}") for subject, change, after in product(SUBJECTS, changes, _AFTER))


FAMILY = Family("sidecar", _plan, _plans)
