"""Random plans about a DMCluster: users' edits, faults of machines, and initial mistakes.

`dm/17` is the plan of a seed, as `seed/17` is one about a TidbCluster. It ends Ready with nothing left to do, or with
substitutes that serve.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS
from ports.randomness import Randomness
from simulate.engine.other_kinds import made, sources, spec_of_kind
from simulate.engine.plan import DELETED, Edit, Plan
from simulate.engine.trees import merged
from simulate.engine.worlds import BESIDE_DM, NAME
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.homes import Home
from simulate.families.loss_and_edit import DM_CONVERGED
from simulate.families.mistakes import MISTAKES, NO_CLASS_OF_DATA, NO_IMAGE
from simulate.families.random_edits import DMUsers, Edits
from simulate.families.seeds import budget, fault, in_order, time

_CLUSTERS = ("tiny", BESIDE_DM)
"""The clusters beside the DMCluster: with failover after five minutes, or within seconds."""
_SOURCES = ("orders", "clients")
_LONGEST_MISTAKE = 60.0


def _plan(name: str, draw: Randomness) -> Plan:
    users = DMUsers(draw, pick(draw, _CLUSTERS))
    is_mistaken = draw.integer(1, 3) == 1
    first = _mistaken(users) if is_mistaken else users.home.made
    begins = 0.0 if is_mistaken else users.home.begins_at
    count = draw.integer(0 if is_mistaken else 1, 3)
    edits = [edit.postponed(begins) for _ in range(count) for edit in users.edits(time(draw))]
    faults = tuple(fault(users).postponed(begins) for _ in range(draw.integer(0, 3)))
    bound = _SOURCES[: draw.integer(1, len(_SOURCES))]
    return Plan(
        name=name,
        cluster=users.cluster,
        budget=budget([*first, *edits]),
        # a TidbCluster could lose its only PD with a machine
        edits=in_order([Edit(at=0.5, delete=f"{TIDB_CLUSTERS}/{NAME}"), *first, *edits]),
        given=(NO_IMAGE, sources(users.home.begins_at - 10.0, *bound)),
        faults=faults,
        reference=False,
        ends=DELETED,
        ends_beside={users.home.target: (*DM_CONVERGED, *_asks_for(edits, bound))},
    )


def _asks_for(edits: Iterable[Edit], bound: Sequence[str]) -> Iterator[str]:
    """The reasons that need the user's decision: which source stays if fewer workers than sources are desired."""
    if any(edit.spec.get("worker", {}).get("replicas", len(bound)) < len(bound) for edit in edits):
        yield "DMWorkerBound"


def _mistaken(users: DMUsers) -> Edits:
    """Create it with a mistake, which the user corrects later."""
    home = Home(users.component(), users.cluster)
    mistake = pick(users.draw, (*MISTAKES.values(), NO_CLASS_OF_DATA))
    wrong, right = mistake.edits(home, 1.0, 1.0 + between(users.draw, 5.0, _LONGEST_MISTAKE))
    return made(1.0, DM_CLUSTERS, merged(spec_of_kind(DM_CLUSTERS), wrong.spec)), replace(right, target=home.target)


FAMILY = of_seeds("dm", 400, _plan)
