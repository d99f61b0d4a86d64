"""Random plans: a few users' edits and a few faults, all drawn from one seed."""

from collections.abc import Callable, Iterable, Sequence

from ports.randomness import Randomness, SeededRandomness
from simulate.engine import plan as plans
from simulate.engine.other_kinds import DM
from simulate.engine.plan import Edit, Plan
from simulate.engine.worlds import BESIDE_DM, NAME, NAMESPACE
from simulate.families.draws import between, pick
from simulate.families.mistakes import NO_IMAGE
from simulate.families.random_edits import Users
from simulate.families.users_data import of_all_components

_LAST = 120.0
"""Seconds within which everything begins; temporary edits are undone within two more minutes."""
_REST = 600.0
"""Seconds after the last edit until the cluster must be at rest."""

_LONGEST = {"brittle": 200.0, BESIDE_DM: 200.0}
"""The maximum duration of a fault in seconds, if not a minute: brittle clusters fail over meanwhile."""

_CLUSTERS = (
    *("small", "small", "small", "brittle", "brittle", "wide", "tls"),
    *("analytic", "replicating", "proxied", "binlog", "micro", "complete", "complete-tls"),
)
_SEARCHING, _ONE_IN = "searching", 16
"""Each sixteenth seed has full-text search, so that the other seeds keep their clusters."""

_Make = Callable[[Users, float, float], plans.Fault]


def random_plan(seed: int) -> Plan:
    """The plan of a seed."""
    draw = SeededRandomness(f"plan {seed}")
    picked = pick(draw, _CLUSTERS)
    cluster = _SEARCHING if seed % _ONE_IN == _ONE_IN - 1 else picked
    users = Users(draw, cluster)
    edits = [edit for _ in range(draw.integer(1, 3)) for edit in users.edits(time(draw))]
    faults = [fault(users) for _ in range(draw.integer(0, 4))]
    return Plan(
        name=f"seed/{seed}",
        cluster=cluster,
        seed=seed,
        budget=budget(edits),
        edits=in_order(edits),
        given=(NO_IMAGE, *of_all_components(cluster)),
        faults=tuple(faults),
        reference=False,
        interleaved=draw.integer(1, 4) == 1,
    )


def fault(users: Users) -> plans.Fault:
    """A random fault in or around a cluster."""
    return _drawn(users, _OF_DM_CLUSTERS if users.is_of_dm else _OF_TIDB_CLUSTERS)


def fault_of_operator(users: Users) -> plans.Fault:
    """A random fault of the operator, or between it and the API server."""
    return _drawn(users, _OF_THE_OPERATOR)


def _drawn(users: Users, makes: Sequence[_Make]) -> plans.Fault:
    draw, longest = users.draw, _LONGEST.get(users.cluster, 60.0)
    return pick(draw, makes)(users, time(draw), between(draw, 1.0, longest))


def time(draw: Randomness) -> float:
    """A random start."""
    return between(draw, 0.0, _LAST)


def budget(edits: Iterable[Edit]) -> float:
    """The seconds for the users' edits and the clusters' recovery."""
    return max([_LAST, *map(_moment, edits)]) + _REST


def in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The users' edits by time."""
    return tuple(sorted(edits, key=_moment))


def _moment(edit: Edit) -> float:
    return edit.at or 0.0


def _pod(users: Users) -> str:
    return f"{NAMESPACE}/{users.pod()}"


def _world(verb: str, at: float, seconds: float, /, **arguments: object) -> plans.Fault:
    return plans.World(at=at, verb=verb, arguments=dict(arguments), seconds=seconds, if_there=True)


def _pd(verb: str, **arguments: object) -> _Make:
    """A fault of PD or the masters as a whole."""
    return lambda users, at, seconds: _world(
        verb, at, seconds, cluster=f"{NAMESPACE}/{DM if users.is_of_dm else NAME}", **arguments
    )


def _of_peers(component: str, port: int) -> _Make:
    """Cut a member off from the others: one of the users' own, or the first of the PD that they use."""

    def make(users: Users, at: float, seconds: float) -> plans.Fault:
        pod = users.pod(component) if component in users.components else f"{users.coordinators}-0"
        return _world("network_cut", at, seconds, target=f"{NAMESPACE}/{pod}", origin="*", port=port)

    return make


def _of_a_pod(verb: str) -> _Make:
    return lambda users, at, seconds: _world(verb, at, seconds, pod=_pod(users))


def _of_a_node(verb: str) -> _Make:
    return lambda users, at, seconds: _world(verb, at, seconds, node=f"node-{users.draw.integer(0, 2)}")


def _foreign(users: Users, at: float, _: float) -> plans.Fault:
    """Another controller's mark on one of the operator's objects (FP11)."""
    kind, name = pick(
        users.draw,
        (
            ("pods", users.pod()),
            ("statefulsets.apps", f"{users.name}-{users.component()}"),
            ("services", users.coordinators),
        ),
    )
    meta = {"labels": {"example.com/mark": "a"}, "annotations": {"example.com/mark": f"{at}"}}
    return plans.Foreign(at=at, target=f"{kind}/{name}", patch={"metadata": meta})


def _before_or_after(users: Users) -> plans.When:
    return pick(users.draw, ("before", "after"))


_OF_THE_OPERATOR: tuple[_Make, ...] = (
    lambda users, *_: plans.Crash(write=users.draw.integer(1, 40), when=_before_or_after(users)),
    lambda _, at, seconds: plans.Crash(at=at, seconds=seconds),
    lambda users, *_: plans.Lost(write=users.draw.integer(1, 40), when=_before_or_after(users)),
    lambda users, *_: plans.Refused(write=users.draw.integer(1, 40), code=pick(users.draw, (403, 409, 429, 500, 503))),
    lambda users, _, seconds: plans.Denied(write=users.draw.integer(1, 40), seconds=seconds),
    lambda users, at, seconds: plans.Trouble(at=at, code=pick(users.draw, (0, 409, 500)), seconds=seconds),
    lambda _, at, seconds: plans.Trouble(at=at, code=500, port="data plane", seconds=seconds),
    lambda _, at, seconds: plans.Stale(at=at, seconds=seconds),
    lambda _, at, seconds: plans.Hidden(at=at, seconds=seconds),
    lambda users, at, seconds: plans.TimeTravel(at=at, back=users.draw.integer(1, 10), seconds=seconds),
    lambda _, at, seconds: plans.Second(at=at, seconds=seconds),
    lambda users, at, _: plans.Jump(at=at, seconds=pick(users.draw, (-3600.0, 3600.0, 86400.0))),
)

_ANYWHERE: tuple[_Make, ...] = (
    *_OF_THE_OPERATOR,
    _foreign,
    _of_a_pod("pod_crash"),
    _of_a_pod("pod_crash_loop"),
    _of_a_pod("pod_evicted"),
    _of_a_pod("pod_hang"),
    _of_a_pod("pod_unready"),
    _of_a_pod("pod_pending"),
    _of_a_pod("pod_terminating"),
    _of_a_node("node_gone"),
    _of_a_node("node_cut_off"),
    lambda _, at, seconds: _world("network_cut", at, seconds, target="*"),
    lambda users, at, seconds: _world("network_cut", at, seconds, target=f"{NAMESPACE}/{users.coordinators}-*"),
    lambda users, at, seconds: _world("network_cut", at, seconds, target=_pod(users)),
    lambda users, at, seconds: _world("network_slow", at, seconds, seconds=pick(users.draw, (1.0, 4.0, 10.0, 30.0))),
)

_OF_PD: tuple[_Make, ...] = (
    _of_peers("pd", 2380),
    _pd("pd_no_leader"),
    _pd("pd_leader_changes"),
    _pd("pd_slow_to_load", reporting=30.0),
    _pd("eviction_refused"),
    _pd("pd_answers", status=500),
    _pd("pd_truncated"),
    _pd("pd_no_stores"),
    _pd("pd_old"),
    _pd("pd_fickle"),
    _pd("pd_answer_lost", method="DELETE"),
    _pd("pd_answer_lost", every=3),
    _pd("regions_frozen"),
)

_OF_MASTERS: tuple[_Make, ...] = (_of_peers("dm-master", 8291), _pd("pd_no_leader"), _pd("pd_leader_changes"))

_OF_THE_API: tuple[_Make, ...] = (
    lambda users, at, seconds: _world(
        "creation_refused", at, seconds, resource=pick(users.draw, ("pods", "services", "persistentvolumeclaims"))
    ),
    lambda _, at, seconds: _world("api_down", at, seconds, user="system:*"),
    lambda _, at, seconds: _world("api_restart", at, seconds, expired=True),
)

_OF_TIDB_CLUSTERS = (*_ANYWHERE, *_OF_PD, *_OF_THE_API)
_OF_DM_CLUSTERS = (*_ANYWHERE, *_OF_MASTERS, *_OF_THE_API)
"""The sources of random plans, by kind of cluster."""
