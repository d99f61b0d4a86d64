"""A drill is true: the loss at its worst moment has the same effects in a world of the simulator."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import TIDB_CLUSTERS
from rehearsal.change import Scene, entered
from rehearsal.damage import Damage, damage
from rehearsal.drill import Drilled, Loss, When, drill, named
from rehearsal.film import Film
from rehearsal.forecast import forecast
from rehearsal.recording import record
from rehearsal.twin import twin_of
from sandbox.world import World as SimulatedWorld
from simulate.engine.engine import Engine, NoJudge
from simulate.engine.events import Events
from simulate.engine.plan import Crash, Edit, Plan, World
from simulate.engine.trees import merged
from simulate.engine.worlds import KEY, NAME, NAMESPACE, TIMINGS
from simulate.run import prepare

CHANGES: Mapping[str, tuple[str, Json]] = {
    "tidb": ("mortal-tidb", {"tidb": {"config": {"log": {"level": "warn"}}}}),
    "tikv": ("mortal-3-3", {"tikv": {"config": {"log-level": "warn"}}}),
    "pd": ("mortal-3-3", {"pd": {"config": {"log": {"level": "warn"}}}}),
}
"""Clusters on six machines whose operator fails over within a minute, and changes that restart pods, by component."""

LONG = 900.0
"""Seconds in which everything that the loss causes happens."""


@dataclass
class Filming(NoJudge):
    """Films a world of the simulator while it runs."""

    world: SimulatedWorld
    film: Film
    seen: list[object] = field(default_factory=list)

    def step(self) -> None:
        """Look if something may have changed."""
        pd = self.film.pd
        stores = pd.stores if pd else None
        now: list[object] = [
            self.world.server.storage.version,
            stores and [stores.regions, [each.died_at for each in stores.all()]],
        ]
        if now != self.seen:
            self.seen = now
            self.film.look()


def drilled(engine: Engine, after: Json, loss: Loss) -> Drilled:
    """The worst moment of a loss, on the twin of a world."""
    recording = record(engine.admin, engine.cluster())
    twin = twin_of(recording, [], engine.clock.wall(), TIMINGS)
    with twin.stage:
        scene: Scene = entered(replace(twin, settings=replace(engine.settings, rechecks=False)), [after])
        return max(drill(scene, [after], loss, When(each=True)), key=lambda each: each.severity)


def happened(engine: Engine, plan: Plan, loss: Loss, step: str) -> Damage:
    """The damage in the world itself of a loss at the beginning of a step."""
    film = Film(engine.world, TIDB_CLUSTERS, NAMESPACE, NAME, engine.clock.now())
    film.see_servers()
    engine.begin(plan)
    engine.judge = Filming(engine.world, film)

    def has_begun() -> bool:
        return step in map(named, forecast(film.frames).steps)

    assert not step or engine.run_until(has_begun, LONG), step
    at = engine.elapsed
    faults: Mapping[str, Any] = {
        "node": lambda: World(at=0.0, verb="node_gone", arguments={"node": loss.name}, seconds=loss.seconds),
        "pod": lambda: World(
            at=0.0, verb="pod_crash_loop", arguments={"pod": f"{NAMESPACE}/{loss.name}"}, seconds=loss.seconds
        ),
        "operator": lambda: Crash(at=0.0, seconds=loss.seconds),
    }
    Events(engine, [faults[loss.kind]()])
    engine.run(LONG)
    return damage(film.frames, at)


def effects(found: Damage) -> dict[str, object]:
    """What must be the same: all but the times, which differ by the phases of resyncs and probes."""
    return {
        "stops": [(each.component, each.ready, each.needed, each.seconds is None) for each in found.outages],
        "regions": {(each.hurt, each.seconds is None) for each in found.spells if each.hurt != "leaderless"},
        "failovers": {(each.pod, each.substitute, each.serves is None) for each in found.failovers},
        "lowest": {each.component: each.lowest for each in found.floors},
        "restarts": {each.pod for each in found.steps},
        "whole": found.whole is not None,
        "end": found.reason,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "kind", "seconds"),
    [
        pytest.param("tidb", "node", 0.0, marks=pytest.mark.thorough),
        pytest.param("tikv", "node", 0.0, marks=pytest.mark.thorough),
        pytest.param("pd", "node", 0.0, marks=pytest.mark.thorough),
        pytest.param("tikv", "pod", 0.0, marks=pytest.mark.thorough),
        pytest.param("pd", "pod", 90.0, marks=pytest.mark.thorough),
        ("tidb", "pod", 30.0),
        pytest.param("tikv", "operator", 20.0, marks=pytest.mark.thorough),
    ],
)
def test_the_worst_moment_of_a_drill_is_as_bad_in_the_world(change: str, kind: str, seconds: float) -> None:
    cluster, spec = CHANGES[change]
    plan = Plan(name="drill", cluster=cluster, edits=(Edit(at=0.0, spec=spec),))
    engine = prepare(plan)
    after = merged(engine.cluster(), {"spec": spec, "status": None})
    victim = f"basic-{change}-1"
    place = engine.world.kubelet.node_of(NAMESPACE, victim).name
    loss = Loss(kind, {"node": place, "pod": victim}.get(kind, ""), seconds)
    worst = drilled(engine, after, loss)
    expected = worst.damages[f"TidbCluster {KEY}"]
    # databases serve without an operator, and this change leaves no spare for another loss
    assert (kind != "operator") is expected.stops
    found = happened(engine, plan, loss, worst.moment.step)
    assert effects(expected) == effects(found)
