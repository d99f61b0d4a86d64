"""Random changes that users make and undo repeatedly, faster than the operator can follow.

`flip/17` is the plan of a seed: two switches, each with its own pace. Whatever the operator was doing, the cluster must
end as if only the last edits had been made (O6), without losing a member on the way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kube.objects import Json
from kube.resources import DM_CLUSTERS
from ports.randomness import Randomness
from simulate.engine.components import profile
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.plan import Edit, Plan
from simulate.engine.trees import difference, merged
from simulate.engine.worlds import CLUSTERS, ROOMY, replicas_of
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.homes import Home, all_components
from simulate.families.mistakes import MISTAKES, NO_IMAGE
from simulate.families.random_edits import Users
from simulate.families.seeds import budget, fault
from simulate.families.users_data import of_all_components

_DM = "tiny"
"""The cluster beside which a plan creates a DMCluster, which it changes."""
_CLUSTERS = ("small", "small", "brittle", "wide", ROOMY, "complete", "tls", _DM)

_PACES = (0.3, 1.0, 3.0, 8.0, 20.0, 45.0)
"""The average seconds between two edits."""
_MOST = 16
"""The maximum number of edits of a switch."""
_AT_MOST = 200.0
"""Seconds for which users keep changing."""
_REPLICAS = 3
_ONE_IN = 4
"""One of this many plans also has a fault."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of the spec that is merged and removed again; one that `stays` may also be the end."""

    spec: Json
    stays: bool = True


_WHOLE = (
    Switch({"paused": True}, stays=False),
    Switch({"suspendAction": {"suspendStatefulSet": True}}, stays=False),
    Switch({"annotations": {"team": "a"}}),
    Switch({"version": "v8.5.3"}),
)


def _plan(name: str, draw: Randomness) -> Plan:
    cluster = pick(draw, _CLUSTERS)
    homes = [home for home in (Home(component, cluster) for component in all_components()) if _is_in(home)]
    switches = [switch for home in homes for switch in _switches(home)] + list(_WHOLE)
    home, two = homes[0], (pick(draw, switches), pick(draw, switches))
    edits = tuple(_edits(home, list(_moments(draw, home.begins_at, two))))
    return Plan(
        name=name,
        cluster=cluster,
        budget=budget(edits),
        edits=(*home.made, *edits),
        given=(NO_IMAGE, *of_all_components(cluster)),
        faults=(fault(Users(draw, cluster)),) if draw.integer(1, _ONE_IN) == 1 else (),
        reference=False,
    )


def _is_in(home: Home) -> bool:
    """True if the cluster has the component."""
    return home.is_of_dm if home.cluster == _DM else home.component in replicas_of(home.cluster)


def _switches(home: Home) -> Iterator[Switch]:
    replicas = home.section["replicas"]
    for count in {1, replicas - 1, replicas + 1, replicas + 2} - {0, replicas}:
        # PD keeps three replicas of each region
        yield Switch(home.merge(0.0, {"replicas": count}).spec, stays=home.component != "tikv" or count >= _REPLICAS)
    for change in ({"config": profile(home.component).config("warn")}, {"labels": {"team": "a"}}):
        yield Switch(home.merge(0.0, change).spec)
    for mistake in MISTAKES.values():
        if not mistake.whole:
            yield Switch(home.merge(0.0, mistake.wrong).spec, stays=False)


def _moments(draw: Randomness, begins: float, switches: Sequence[Switch]) -> Iterator[tuple[float, Switch, bool]]:
    """The moments at which each switch is turned on and off."""
    for switch in switches:
        pace = pick(draw, _PACES)
        count = min(_MOST, int(_AT_MOST / pace)) // 2 * 2
        at, last = begins + 1.0, count + (switch.stays and draw.integer(0, 1))
        for number in range(last):
            yield at, switch, number % 2 == 0
            at = round(at + between(draw, pace / 2, pace * 1.5), 2)


def _edits(home: Home, moments: Sequence[tuple[float, Switch, bool]]) -> Iterator[Edit]:
    """The users' edits."""
    first: Json = spec_of_kind(DM_CLUSTERS) if home.is_of_dm else CLUSTERS[home.cluster]()["spec"]
    on: list[Switch] = []
    before = first
    for at, switch, is_on in sorted(moments, key=lambda each: each[0]):
        on = [*on, switch] if is_on else [each for each in on if each is not switch]
        after = first
        for each in on:
            after = merged(after, each.spec)
        if patch := difference(before, after):
            yield Edit(at=at, target=home.target, spec=patch)
        before = after


FAMILY = of_seeds("flip", 400, _plan)
