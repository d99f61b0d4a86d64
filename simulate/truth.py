"""Whether plans come true: a change is planned on the twin of a world at rest, and then made in that world.

`kubectl tidb plan` must name the pods that restart, start and leave in their order, the lowest numbers of Ready pods,
the gaps in service, the refusals, and the end. Each difference from what happens in the world is a failure.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace as with_fields

import msgspec
from msgspec.structs import replace

from kube.objects import Json
from kube.resources import SECRETS, TIDB_CLUSTERS
from rehearsal.change import change, entered
from rehearsal.film import Film, Watcher
from rehearsal.forecast import Forecast, Step, forecast
from rehearsal.recording import record
from rehearsal.stage import CannotRehearse
from rehearsal.twin import twin_of
from simulate.engine.engine import Engine
from simulate.engine.plan import Edit, Plan
from simulate.engine.trees import merged
from simulate.engine.worlds import KEY, NAME, NAMESPACE, TIMINGS
from simulate.judge.judge import Violation
from simulate.run import Outcome

RULE = "forecast"
"""The rule of the violations."""

_LONGEST = 6 * 3600.0
"""The seconds after which a change that still makes progress counts as stuck, as in a rehearsal."""
_GIVEN = 10.0
"""The seconds in which what a plan is given has happened."""
_TOGETHER = 2.0
"""The seconds within which steps of different components have no order: they differ by the phases of checks."""


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


def come_true(engine: Engine, plan: Plan) -> Outcome:
    """Plan a change from `changes`, make it, and report the differences."""
    (edit,) = plan.edits
    engine.begin(replace(plan, edits=()))
    engine.run(_GIVEN)
    planned = _planned(engine, merged(engine.cluster(), {"spec": edit.spec}))
    if isinstance(planned, Forecast):
        found = list(differences(planned, _happened(engine, replace(plan, given=()))))
    else:
        found = [f"no twin: {planned}"]
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


def _planned(engine: Engine, after: Json) -> Forecast | str:
    """The forecast on the twin of the world; a sentence if there is no twin."""
    recording = record(engine.admin, engine.cluster())
    secrets = [_as_issued(each.decode()) for each in engine.admin.list_page(SECRETS, NAMESPACE).items]
    try:
        twin = twin_of(recording, secrets, engine.clock.wall(), TIMINGS)
    except CannotRehearse as error:
        return str(error)
    with twin.stage:
        scene = entered(with_fields(twin, settings=with_fields(engine.settings, rechecks=False)), [after])
        return change(scene, [after])[f"TidbCluster {KEY}"]


def _as_issued(secret: Json) -> Json:
    """A Secret without what the API server adds."""
    meta = {key: secret["metadata"][key] for key in ("name", "namespace")}
    return {key: secret[key] for key in ("apiVersion", "kind", "type", "data") if key in secret} | {"metadata": meta}


def _happened(engine: Engine, plan: Plan) -> Forecast:
    """The change in the world itself, as a forecast."""
    film = Film(engine.world, TIDB_CLUSTERS, NAMESPACE, NAME, engine.clock.now())
    watcher = Watcher(engine.clock, [film])
    engine.begin(plan)

    def is_over() -> bool:
        watcher.look()
        return watcher.is_over()

    engine.run_until(is_over, _LONGEST)
    return forecast(film.frames)


def differences(planned: Forecast, happened: Forecast) -> Iterator[str]:
    """The differences between a plan and what happened."""
    for what, one, other in (
        ("end", _end(planned), _end(happened)),
        ("warnings", list(planned.warnings), list(happened.warnings)),
        ("lowest", _lowest(planned), _lowest(happened)),
        ("gaps", _gaps(planned), _gaps(happened)),
        ("steps", sorted(map(_named, planned.steps)), sorted(map(_named, happened.steps))),
    ):
        if one != other:
            yield f"{what}: planned {one}, happened {other}"
    yield from _disorder(planned.steps, happened.steps)


def _end(found: Forecast) -> tuple[str, str]:
    """The end, with the message of a refusal; other messages have times and counts in them."""
    return found.end, found.message if found.end == "refused" else ""


def _lowest(found: Forecast) -> dict[str, int]:
    return {each.component: each.lowest for each in found.floors}


def _gaps(found: Forecast) -> list[tuple[str, int, int]]:
    return sorted((each.component, each.ready, each.needed) for each in found.gaps)


def _named(step: Step) -> str:
    return f"{step.pod} {step.act}"


def _disorder(planned: Iterable[Step], happened: Iterable[Step]) -> Iterator[str]:
    """Pairs of steps whose order is another one than planned."""
    begun = {_named(step): step.begins for step in happened}
    order = [step for step in planned if _named(step) in begun]
    for one, other in ((one, other) for index, one in enumerate(order) for other in order[index + 1 :]):
        apart, late = other.begins - one.begins, begun[_named(one)] - begun[_named(other)]
        if min(apart, late) > _TOGETHER:
            yield f"order: planned {_named(one)} before {_named(other)}, happened {late:.0f} s after it"
