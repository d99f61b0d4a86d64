"""Random plans: a few edits and a few faults, all drawn from one seed."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ports.randomness import Randomness, SeededRandomness
from simulate import plan as plans
from simulate.plan import Edit, Plan

_LAST_EDIT = 120.0
_REST = 300.0
_T = TypeVar("_T")

_Make = Callable[[Randomness, float], plans.Fault]


def random_plan(seed: int) -> Plan:
    """The plan of a seed."""
    draw = SeededRandomness(f"plan {seed}")
    edits = [_edit(draw, _time(draw)) for _ in range(draw.integer(1, 3))]
    faults = [_pick(draw, _FAULTS)(draw, _time(draw)) for _ in range(draw.integer(0, 4))]
    return Plan(
        name=f"seed/{seed}",
        seed=seed,
        budget=_LAST_EDIT + _REST,
        edits=tuple(sorted(edits, key=lambda edit: edit.at or 0.0)),
        faults=tuple(faults),
        reference=False,
    )


def _edit(draw: Randomness, at: float) -> Edit:
    part = _pick(draw, ("tikv", "tidb"))
    return Edit(at=at, spec={part: {"replicas": draw.integer(3, 6)}})


def _time(draw: Randomness) -> float:
    return round(draw.uniform(0.0, _LAST_EDIT), 2)


def _pick(draw: Randomness, options: Sequence[_T]) -> _T:
    return options[draw.integer(0, len(options) - 1)]


def _pod(draw: Randomness) -> str:
    part, count = _pick(draw, (("pd", 3), ("tikv", 3), ("tidb", 2)))
    return f"default/basic-{part}-{draw.integer(0, count - 1)}"


def _short(draw: Randomness) -> float:
    return round(draw.uniform(1.0, 60.0), 1)


def _world(draw: Randomness, at: float, verb: str, **arguments: object) -> plans.Fault:
    return plans.World(at=at, verb=verb, arguments=dict(arguments), seconds=_short(draw))


_FAULTS: tuple[_Make, ...] = (
    lambda draw, _: plans.Crash(write=draw.integer(1, 20), when=_pick(draw, ("before", "after"))),
    lambda draw, at: plans.Crash(at=at, seconds=_short(draw)),
    lambda draw, _: plans.Lost(write=draw.integer(1, 20), when=_pick(draw, ("before", "after"))),
    lambda draw, _: plans.Refused(write=draw.integer(1, 20), code=_pick(draw, (403, 409, 429, 500, 503))),
    lambda draw, at: plans.Trouble(at=at, code=_pick(draw, (0, 409, 500)), seconds=_short(draw)),
    lambda draw, at: plans.Stale(at=at, seconds=_short(draw)),
    lambda draw, at: plans.Hidden(at=at, seconds=_short(draw)),
    lambda draw, at: plans.TimeTravel(at=at, back=draw.integer(1, 10), seconds=_short(draw)),
    lambda draw, at: plans.Second(at=at, seconds=_short(draw)),
    lambda draw, at: plans.Jump(at=at, seconds=_pick(draw, (-3600.0, 3600.0, 86400.0))),
    lambda draw, at: _world(draw, at, "pod_crash", pod=_pod(draw)),
    lambda draw, at: _world(draw, at, "pod_crash_loop", pod=_pod(draw)),
    lambda draw, at: _world(draw, at, "pod_hang", pod=_pod(draw)),
    lambda draw, at: _world(draw, at, "pod_unready", pod=_pod(draw)),
    lambda draw, at: _world(draw, at, "network_cut", target="*"),
    lambda draw, at: _world(draw, at, "network_cut", target="default/basic-pd-*"),
    lambda draw, at: _world(draw, at, "pd_no_leader", cluster="default/basic"),
    lambda draw, at: _world(draw, at, "pd_answers", cluster="default/basic", status=500),
    lambda draw, at: _world(draw, at, "pd_truncated", cluster="default/basic"),
    lambda draw, at: _world(draw, at, "pd_no_stores", cluster="default/basic"),
    lambda draw, at: _world(draw, at, "pd_old", cluster="default/basic"),
    lambda draw, at: _world(draw, at, "node_gone", node=f"node-{draw.integer(0, 2)}"),
    lambda draw, at: _world(draw, at, "api_down", user="system:*"),
    lambda draw, at: _world(draw, at, "api_restart", expired=True),
)
