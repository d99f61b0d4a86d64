"""Two joined clusters, at random: users' edits and faults of both, and one that leaves or is deleted.

`joined/17` is the plan of a seed. The guest joins the host with its own PD, or uses the host's (`spec.cluster`). A
leaving cluster scales down to nothing, as documented; a deleted one removes members and stores that the other needs.
"""

from collections.abc import Iterator

from kube.resources import TIDB_CLUSTERS
from ports.randomness import Randomness
from simulate.engine.plan import DELETED, Edit, Plan
from simulate.engine.worlds import NAME, NAMESPACE, replicas_of
from simulate.families.draws import pick
from simulate.families.family import of_seeds
from simulate.families.loss_and_edit import CONVERGED
from simulate.families.mistakes import NO_IMAGE
from simulate.families.random_edits import Users
from simulate.families.seeds import budget, fault, in_order, time

_GUEST = "guest"

_HOSTS = ("small", "brittle")
_GUESTS = ("tiny", "tiny", "small", "stores")

_LEAVES, _DELETED = "leaves", "deleted"
_LAST = 260.0
"""Seconds after which no more edits are made, and the leaving cluster leaves."""


_REGIONS_LOST = ("PodsNotReady", "RollingUpdate", "RollingUpdateStuck", "StoresNotUp")
"""The report if unannounced stores had the majority of some regions."""


def _plan(name: str, draw: Randomness) -> Plan:
    host, guest = pick(draw, _HOSTS), pick(draw, _GUESTS)
    both = Users(draw, host), Users(draw, guest, _GUEST)
    edits = [edit for _ in range(draw.integer(1, 3)) for edit in pick(draw, both).edits(time(draw))]
    faults = tuple(fault(pick(draw, both)) for _ in range(draw.integer(0, 2)))
    who, becomes = pick(draw, both), pick(draw, ("", "", _LEAVES, _DELETED))
    edits += _goes(draw, who, becomes)
    return Plan(
        name=name,
        cluster=host,
        budget=budget(edits),
        edits=in_order(edits),
        given=(NO_IMAGE,),
        faults=faults,
        reference=False,
        ends=_ends(who, becomes, guest),
        neighbours={f"{NAMESPACE}/{_GUEST}": guest},
        joined=(f"{NAMESPACE}/{_GUEST}",),
    )


def _ends(who: Users, becomes: str, guest: str) -> str | tuple[str, ...]:
    """The host's end, if not at rest together with the guest."""
    if becomes == _DELETED:
        # unannounced members still count for the quorum, until the user removes them
        left = ("PDUnreachable", "PDQuorum") if "pd" in replicas_of(guest) else ()
        return DELETED if who.name == NAME else (*CONVERGED, *_REGIONS_LOST, *left)
    if becomes == _LEAVES and who.name == NAME and guest != _HOSTS[0]:
        # its stores need its PD, or are too few for all regions
        return ("Done", "FailedScaleIn")
    return "Done"


def _goes(draw: Randomness, users: Users, becomes: str) -> Iterator[Edit]:
    if becomes == _LEAVES:
        yield users.leave(_LAST)
    elif becomes == _DELETED:
        yield Edit(at=time(draw), delete=f"{TIDB_CLUSTERS}/{users.name}")


FAMILY = of_seeds("joined", 200, _plan)
