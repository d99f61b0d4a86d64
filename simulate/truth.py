"""Whether plans and drills come true: what is foreseen on the twin of a world at rest must happen in that world.

`kubectl tidb plan` must name the pods that restart, start and leave in their order, the lowest numbers of Ready pods,
the gaps in service, the refusals, and the end. `kubectl tidb drill` must name what a loss in the middle of a change
stops, which pods are replaced, and whether all becomes whole again. Each difference is a failure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

import msgspec
from msgspec.structs import replace

from kube.objects import Json
from kube.resources import SECRETS, TIDB_CLUSTERS
from ports.forks import Forks
from ports.randomness import Randomness, SeededRandomness
from rehearsal.change import LONGEST, Scene, change, entered
from rehearsal.damage import Damage, Failover, Outage, Spell, damage
from rehearsal.drill import ANOTHER_REPLICA, Drilled, Loss, When, drill, has_begun, named
from rehearsal.film import Film, Watcher
from rehearsal.forecast import Forecast, Step, forecast
from rehearsal.recording import record
from rehearsal.twin import twin_of
from sandbox.world import World as SimulatedWorld
from simulate.engine.engine import Engine, NoJudge
from simulate.engine.events import Events
from simulate.engine.plan import Crash, Edit, Fault, Plan, World
from simulate.engine.trees import merged
from simulate.engine.worlds import KEY, NAME, NAMESPACE, TIMINGS
from simulate.families.draws import pick
from simulate.judge.judge import Violation
from simulate.run import Outcome
from workqueue.priority_queue import NO_REST

RULE = "truth"
"""The rule of the violations."""

_GIVEN = 10.0
"""The seconds in which what a plan is given has happened."""
_TOGETHER = 2.0
"""The seconds within which steps have no order: they differ by the phases of checks."""
_RETURNS = (0.0, 30.0, 90.0)
"""The seconds after which a loss returns; never with 0."""
_AFTERWARDS = 4500.0
"""The seconds after a loss in which everything that it causes happens."""


def changes(plans: Iterable[Plan]) -> Iterator[Plan]:
    """The distinct changes that plans make to the spec of a TidbCluster at rest, each as one edit without faults."""
    seen: set[bytes] = set()
    for plan in plans:
        if plan.neighbours or plan.world == "empty" or any(edit.does_more for edit in plan.edits):
            continue
        spec: Json = {}
        for edit in plan.edits:
            spec = merged(spec, edit.spec)
        place = msgspec.json.encode([plan.cluster, spec], order="sorted")
        if spec and place not in seen:
            seen.add(place)
            yield replace(plan, edits=(Edit(at=0.0, spec=spec),), faults=())


# Plans


def plan_comes_true(engine: Engine, plan: Plan) -> Outcome:
    """Plan a change from `changes`, make it, and report the differences."""
    with twin(engine, plan) as (scene, after):
        planned = change(scene, [after])[f"TidbCluster {KEY}"]
    film = Film(engine.world, TIDB_CLUSTERS, NAMESPACE, NAME, engine.clock.now())
    watcher = Watcher(engine.clock, [film])
    engine.while_waiting = watcher.look
    engine.begin(replace(plan, given=()))

    def is_over() -> bool:
        watcher.look()
        return watcher.is_over()

    engine.run_until(is_over, LONGEST)
    return _outcome(engine, plan, differences(planned, forecast(film.frames)))


def differences(planned: Forecast, happened: Forecast) -> Iterator[str]:
    """The differences between a plan and what happened."""
    for what, one, other in (
        ("end", _end(planned), _end(happened)),
        ("warnings", list(planned.warnings), list(happened.warnings)),
        ("lowest", _lowest(planned), _lowest(happened)),
        ("gaps", _gaps(planned), _gaps(happened)),
        ("steps", sorted(map(named, planned.steps)), sorted(map(named, happened.steps))),
    ):
        if one != other:
            yield f"{what}: planned {one}, happened {other}"
    yield from _disorder(planned.steps, happened.steps)


def _end(found: Forecast) -> tuple[str, str]:
    """The end, with the message of a refusal; other messages have times and counts in them."""
    return found.end, found.message if found.end == "refused" else ""


def _lowest(found: Forecast | Damage) -> dict[str, int]:
    return {floor.component: floor.lowest for floor in found.floors}


def _gaps(found: Forecast) -> list[tuple[str, int, int]]:
    return sorted((gap.component, gap.ready, gap.needed) for gap in found.gaps)


def _disorder(planned: Iterable[Step], happened: Iterable[Step]) -> Iterator[str]:
    """Pairs of steps whose order is another one than planned."""
    begun = {named(step): step.begins for step in happened}
    order = [step for step in planned if named(step) in begun]
    for one, other in ((one, other) for index, one in enumerate(order) for other in order[index + 1 :]):
        apart, late = other.begins - one.begins, begun[named(one)] - begun[named(other)]
        if min(apart, late) > _TOGETHER:
            yield f"order: planned {named(one)} before {named(other)}, happened {late:.0f} s after it"


# Drills


def drill_comes_true(engine: Engine, plan: Plan) -> Outcome:
    """Drill a loss at a moment of a change from `changes`, both drawn from the plan's seed; compare the damage.

    The drill takes from the world what a twin cannot know: which stores have a region in common, which of the steps
    without an order precede the loss, and which node a pod gets that fits on several.

    If the step comes up to two seconds late in the world, others are further on than at its planned moment. Then the
    drill of that step, or of the second of the loss, must come true.
    """
    draw = SeededRandomness(f"drill {plan.name} {plan.seed}")
    with twin(engine, plan) as (scene, after):
        steps = change(scene, [after])[f"TidbCluster {KEY}"].steps
    step = pick(draw, ["", *map(named, steps)])
    loss = _loss(engine, draw)
    with twin(engine, replace(plan, given=())) as (scene, after):
        _place_regions(engine, scene)
        happened = struck(engine, plan, loss, due_by(step, steps))
        scene.stage.world.prefer(happened.nodes)
        moments = [When(step=moment_of(happened.begun, step, steps)), *late(happened.at, step, steps)]
        drills = (_drilled(scene, after, loss, moment) for moment in moments)
        found = untrue(list(damages_differ(each, happened.damage)) for each in drills)
    which = f"{loss} for {loss.seconds:g} s at {moments[0].step or 'once'}"
    return _outcome(engine, plan, (f"{which}: {each}" for each in found))


def _drilled(scene: Scene, after: Json, loss: Loss, moment: When) -> Damage:
    """The damage of a drill in a copy of this process, which leaves the scene as it is."""
    forks = Forks[Sequence[Drilled]]()
    forks.start(lambda: drill(scene, [after], loss, moment))
    ((drilled,),) = forks.results()
    return drilled.damages[f"TidbCluster {KEY}"]


def untrue(drills: Iterable[Sequence[str]]) -> Sequence[str]:
    """The differences of the first drill; none if one of the drills has none, and then no later drill is made."""
    first: Sequence[str] = ()
    for differing in drills:
        if not differing:
            return ()
        first = first or differing
    return first


def late(at: float, step: str, planned: Sequence[Step]) -> Iterator[When]:
    """The second of a loss that the world met at a step at most two seconds later than planned."""
    end = max((each.begins if each.ends is None else each.ends for each in planned), default=0.0)
    if 0.0 < at - _begins(planned).get(step, 0.0) <= _TOGETHER:
        yield When(at=min(at, end))


def _place_regions(engine: Engine, scene: Scene) -> None:
    """Place the twin's regions, a sample with the right counts, as in the world."""
    own, real = (world.data_plane.pd_cluster(NAMESPACE, NAME) for world in (scene.stage.world, engine.world))
    if own is not None and real is not None:
        own.stores.regions = list(real.stores.regions)
        own.stores.reschedule(scene.stage.clock.now())


def due_by(step: str, planned: Sequence[Step], within: float = 0.0) -> set[str]:
    """The steps that begin at most `within` seconds after a step; after the change itself if `step` is empty."""
    begins = _begins(planned)
    latest = begins.get(step, 0.0) + within
    return {name for name, at in begins.items() if at <= latest}


def moment_of(begun: Sequence[Step], step: str, planned: Sequence[Step]) -> str:
    """The planned moment of a loss that the world met at a step: the last step by which no more are due than had begun.

    That may be a later step, since the order of steps within two seconds is open.
    """
    begins = _begins(planned)
    later = sorted(due_by(step, planned, _TOGETHER) - due_by(step, planned), key=begins.__getitem__)
    reached = [name for name in later if all(has_begun(each, begun) for each in due_by(name, planned))]
    return reached[-1] if reached else step


def _begins(planned: Iterable[Step]) -> Mapping[str, float]:
    """When each step begins; for a pod that restarts twice, the first time."""
    found: dict[str, float] = {}
    for step in sorted(planned, key=lambda each: each.begins):
        found.setdefault(named(step), step.begins)
    return found


def _loss(engine: Engine, draw: Randomness) -> Loss:
    """A loss of something that the cluster has."""
    film = Film(engine.world, TIDB_CLUSTERS, NAMESPACE, NAME, engine.clock.now())
    pod = pick(draw, sorted(film.frames[0].pods))
    node = engine.world.kubelet.node_of(NAMESPACE, pod)
    kind = pick(draw, ("node", "zone", "pod", "operator"))
    return Loss(kind, {"node": node.name, "zone": node.zone, "pod": pod}.get(kind, ""), pick(draw, _RETURNS))


@dataclass(frozen=True, slots=True)
class Struck:
    """The damage of a loss `at` seconds, the steps `begun` by then, and the nodes of the pods, by `namespace/pod`."""

    damage: Damage
    at: float
    begun: Sequence[Step]
    nodes: Mapping[str, str]


def struck(engine: Engine, plan: Plan, loss: Loss, steps: Collection[str]) -> Struck:
    """Lose something in the world itself once these steps have begun; at once without any."""
    film = Film(engine.world, TIDB_CLUSTERS, NAMESPACE, NAME, engine.clock.now())
    film.see_servers()
    engine.begin(replace(plan, given=()))
    engine.judge = camera = _Camera(engine.world, film)
    engine.while_waiting = camera.step

    def is_moment() -> bool:
        found = forecast(film.frames).steps
        return all(has_begun(step, found) for step in steps)

    engine.run_until(is_moment, LONGEST)
    at, begun = round(engine.elapsed, 3), forecast(film.frames).steps  # rounded as in frames
    nodes = {f"{NAMESPACE}/{name}": pod.node for name, pod in film.frames[-1].pods.items()}
    Events(engine, [_fault(loss)])
    engine.run(_AFTERWARDS)
    return Struck(damage(film.frames, at), at, begun, nodes)


def _fault(loss: Loss) -> Fault:
    match loss.kind:
        case "operator":
            return Crash(at=0.0, seconds=loss.seconds or ANOTHER_REPLICA)
        case "node":
            return World(at=0.0, verb="node_gone", arguments={"node": loss.name}, seconds=loss.seconds)
        case "zone":
            return World(at=0.0, verb="machines_gone", arguments={"zone": loss.name}, seconds=loss.seconds)
        case _:
            pod = f"{NAMESPACE}/{loss.name}"
            return World(at=0.0, verb="pod_crash_loop", arguments={"pod": pod}, seconds=loss.seconds)


@dataclass
class _Camera(NoJudge):
    """Films a world when Kubernetes, servers or regions change."""

    world: SimulatedWorld
    film: Film
    seen: list[object] = field(default_factory=list)

    def step(self) -> None:
        """Look if something may have changed."""
        now = [self.world.server.storage.version, self.film.beyond_kubernetes()]
        if now != self.seen:
            self.seen = now
            self.film.look()


def damages_differ(drilled: Damage, happened: Damage) -> Iterator[str]:
    """The differences of all but times, which differ by the phases of resyncs and probes.

    These phases also decide whether two servers fail to serve in the same moment, and whether a restart that is under
    way at the loss ends before it.
    """
    both = (drilled, happened)
    blinks = {outage.component for each in both for outage in each.outages if _is_blink(outage)}
    blinks |= {step.component for each in both for step in each.steps if _is_over_at_once(step)}
    one = _effects(drilled, blinks, _lasting_steps(happened))
    other = _effects(happened, blinks, _lasting_steps(drilled))
    for what in one:
        if one[what] != other[what]:
            yield f"{what}: drilled {one[what]}, happened {other[what]}"


def _is_blink(lapse: Outage | Spell) -> bool:
    return lapse.seconds is not None and lapse.seconds < _TOGETHER


def _ends_with_the_loss(step: Step) -> bool:
    return step.begins < 0 and _is_over_at_once(step)


def _is_over_at_once(step: Step) -> bool:
    return step.begins <= 0 and step.ends is not None and step.ends < _TOGETHER


def _lasting_steps(found: Damage) -> set[str]:
    """The pods that a loss restarts, or whose step it meets."""
    return {step.pod for step in found.steps if not _ends_with_the_loss(step)}


def _replacement(failover: Failover, steps: Iterable[Step]) -> tuple[str, str, bool]:
    """A lost pod, its substitute, and whether that never serves; one that leaves as soon as it serves is none."""
    pod, serves = failover.substitute, failover.serves
    left = [step.begins for step in steps if step.pod == pod and step.act == "leaves"]
    if serves is not None and any(at - serves < _TOGETHER for at in left):
        return failover.pod, "", True
    return failover.pod, pod, serves is None


def _effects(found: Damage, blinks: Collection[str], others: Collection[str]) -> dict[str, object]:
    """What a loss does; the lowest numbers of components that blink do not count.

    `others` are the pods with steps in the other world: without them, a step that ends at once was over there.
    """
    steps = [step for step in found.steps if step.pod in others or not _is_over_at_once(step)]
    lasting = [outage for outage in found.outages if not _is_blink(outage)]
    return {
        "stops": [(outage.component, outage.ready, outage.needed, outage.seconds is None) for outage in lasting],
        "regions": sorted(
            {
                (spell.hurt, spell.seconds is None)
                for spell in found.spells
                if spell.hurt != "leaderless" and not _is_blink(spell)
            }
        ),
        "failovers": sorted({_replacement(failover, found.steps) for failover in found.failovers}),
        "lowest": {component: count for component, count in _lowest(found).items() if component not in blinks},
        "restarts": sorted({step.pod for step in steps if not _ends_with_the_loss(step)}),
        "whole": found.whole is not None,
        "end": found.reason,
    }


# Both


@contextmanager
def twin(engine: Engine, plan: Plan) -> Iterator[tuple[Scene, Json]]:
    """The twin of the world, once what the plan is given has happened, and the cluster after the plan's edit."""
    (edit,) = plan.edits
    if plan.given:
        engine.begin(replace(plan, edits=()))
        engine.run(_GIVEN)
    recording = record(engine.admin, engine.cluster())
    secrets = [_as_issued(item.decode()) for item in engine.admin.list_page(SECRETS, NAMESPACE).items]
    built = twin_of(recording, secrets, engine.clock.wall(), TIMINGS)
    built.stage.rest = NO_REST  # as in the simulator's worlds
    after = merged(engine.cluster(), {"spec": edit.spec, "status": None})
    with built.stage:
        yield entered(with_fields(built, settings=with_fields(engine.settings, rechecks=False)), [after]), after


def _as_issued(secret: Json) -> Json:
    """A Secret without what the API server adds."""
    meta = {key: secret["metadata"][key] for key in ("name", "namespace")}
    return {key: secret[key] for key in ("apiVersion", "kind", "type", "data") if key in secret} | {"metadata": meta}


def _outcome(engine: Engine, plan: Plan, found: Iterable[str]) -> Outcome:
    engine.end()
    return Outcome(
        plan=plan,
        violations=tuple(Violation(RULE, engine.elapsed, each) for each in found),
        digest="",
        writes=(),
        summary={},
        end={},
        rested_at=None,
        reads_per_hour=0.0,
        restarts={},
        conflict=False,
    )
