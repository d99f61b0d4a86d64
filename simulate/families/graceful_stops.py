"""Changes of clusters whose pods stop gracefully by themselves and say when they are ready, in several troubles.

`graceful/17` is the plan of a seed: a user annotates a cluster before a roll, an upgrade, a scaling or the deletion of
pods, or in the middle of it. Meanwhile at least two of these happen: PD is silent, machines stop for a while, and the
operator's process ends at a write. In some plans the user withdraws the annotations, or gives pods a priority (ADR 19).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from apis import pod_commands
from apis.components import component_names
from apis.graceful_stop import GRACEFUL_STOP
from apis.ready_endpoints import READY_ENDPOINTS
from kube.objects import Json
from kube.resources import PODS
from member import labels
from ports.randomness import Randomness
from simulate.engine import plan as plans
from simulate.engine.plan import Edit, Fault, Plan, World
from simulate.engine.worlds import KEY, NAME, NAMESPACE, replicas_of
from simulate.families.draws import between, pick
from simulate.families.family import of_seeds
from simulate.families.users_data import of_all_components

_ANNOTATED = 1.0
_LATER = 100.0
"""Seconds after which the pods have their hooks, so that the change meets them."""
_MIDWAY = 8.0
"""Seconds before or after the change within which troubles begin, or a late annotation comes."""
_LONGEST = 110.0
"""The maximum duration of a trouble, within which Kubernetes evicts no pod from a lost machine."""
_REST = 700.0

_HOOKED = component_names(attrgetter("has_graceful_stop"))

_Edits = Callable[[Randomness, str], tuple[Edit, ...]]


def _spec(**spec: Any) -> _Edits:
    return lambda *_: (Edit(at=0.0, spec=spec),)


def _pods_deleted(draw: Randomness, cluster: str) -> tuple[Edit, ...]:
    """Deletions of up to four pods, one after the other or at once."""
    moments = (between(draw, 0.0, _LATER) for _ in range(draw.integer(1, 4)))
    return tuple(Edit(at=at, delete=f"{PODS}/{_pod(draw, cluster)}") for at in sorted(moments))


def _commanded(draw: Randomness, cluster: str) -> tuple[Edit, ...]:
    """A pod that restarts once its leaders are gone, and another deleted pod."""
    command = {pod_commands.EVICT_LEADER: "delete-pod"}
    return Edit(at=0.0, target=f"{PODS}/{NAME}-tikv-1", annotations=command), *_pods_deleted(draw, cluster)


_WARNING = {"log": {"level": "warn"}}
_CHANGES: tuple[tuple[str, _Edits], ...] = (
    ("small", _spec(tikv={"config": _WARNING})),
    ("small", _spec(pd={"version": "v8.5.3"})),
    ("small", _spec(version="v8.5.3")),
    ("tls", _spec(version="v8.5.3")),
    ("replicating", _spec(version="v8.5.3")),
    ("replicating", _spec(ticdc={"config": {"log-level": "warn"}})),
    ("replicating", _spec(ticdc={"replicas": 2})),
    ("small", _spec(tikv={"replicas": 4})),
    ("wide", _spec(tikv={"replicas": 4})),
    ("big", _spec(pd={"replicas": 3})),
    ("small", _pods_deleted),
    ("small", _pods_deleted),
    ("replicating", _pods_deleted),
    ("wide", _commanded),
)
"""Clusters, and the changes of their users."""


def _pod(draw: Randomness, cluster: str) -> str:
    """A pod with hooks."""
    replicas: Mapping[str, int] = replicas_of(cluster)
    component = pick(draw, [each for each in _HOOKED if each in replicas])
    return f"{NAME}-{component}-{draw.integer(0, replicas[component] - 1)}"


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The draws of one plan; its change begins at `begins` seconds."""

    draw: Randomness
    cluster: str
    begins: float

    def moment(self) -> float:
        """A time around the change."""
        return round(max(0.1, self.begins + between(self.draw, -_MIDWAY, _MIDWAY)), 2)

    def lasts(self) -> float:
        """The seconds of a trouble."""
        return between(self.draw, 5.0, _LONGEST)


_ORIGINS: tuple[Json, ...] = ({}, {"origin": f"{NAMESPACE}/{NAME}-t*"}, {"origin": f"{NAMESPACE}/{NAME}-tikv-1"})
"""Whom PD does not answer: the operator, other servers with the hooks of their pods, or one of them."""


def _silence(drawn: _Drawn) -> Iterator[Fault]:
    """PD answers some for a while, or has no leader."""
    at, seconds = drawn.moment(), drawn.lasts()
    silent = [each for each in _ORIGINS if drawn.draw.integer(0, 1)]
    for origin in silent:
        yield World(at=at, verb="network_cut", arguments={"target": f"{KEY}-pd-*"} | origin, seconds=seconds)
    if not silent:
        yield World(at=at, verb="pd_no_leader", arguments={"cluster": KEY}, seconds=seconds)


def _loss(drawn: _Drawn) -> Iterator[Fault]:
    """The machine of a pod stops, or all of its zone."""
    verb, pod = pick(drawn.draw, ("host_gone", "host_gone", "zone_gone")), _pod(drawn.draw, drawn.cluster)
    arguments = {"pod": f"{NAMESPACE}/{pod}"}
    yield World(at=drawn.moment(), verb=verb, arguments=arguments, seconds=drawn.lasts(), if_there=True)


_WRITES = ("* statefulsets.apps*", "DELETE pods *", "PATCH pods *", "*evict-leader-scheduler*", "*/pd/api/v1/*", "")


def _crash(drawn: _Drawn) -> Iterator[Fault]:
    draw = drawn.draw
    yield plans.Crash(
        write=draw.integer(1, 9),
        of=pick(draw, _WRITES),
        when=pick(draw, ("before", "after")),
        seconds=pick(draw, (1.0, 30.0)),
    )


_TROUBLES = ((_silence, _loss), (_silence, _crash), (_loss, _crash), (_silence, _loss, _crash))


def _annotations(draw: Randomness) -> dict[str, str]:
    return pick(draw, ({GRACEFUL_STOP: "true"}, *[{GRACEFUL_STOP: "true", READY_ENDPOINTS: "true"}] * 2))


def _plan(name: str, draw: Randomness) -> Plan:
    cluster, change = pick(draw, _CHANGES)
    is_late = draw.integer(1, 3) == 1
    begins = _ANNOTATED if is_late else _LATER
    drawn = _Drawn(draw, cluster, begins)
    annotations = _annotations(draw)
    edits = [Edit(at=drawn.moment() if is_late else _ANNOTATED, annotations=annotations)]
    edits += (edit.postponed(begins) for edit in change(draw, cluster))
    if draw.integer(1, 3) == 1:
        priority = {labels.RESTART_PRIORITY: "10"}
        edits.append(Edit(at=drawn.moment(), target=f"{PODS}/{_pod(draw, cluster)}", annotations=priority))
    if draw.integer(1, 6) == 1:
        edits.append(Edit(at=begins + between(draw, _MIDWAY, _LATER), annotations=dict.fromkeys(annotations)))
    return Plan(
        name=name,
        cluster=cluster,
        budget=begins + _LATER + _REST,
        edits=tuple(sorted(edits, key=lambda edit: edit.at or 0.0)),
        given=of_all_components(cluster),
        faults=tuple(fault for trouble in pick(draw, _TROUBLES) for fault in trouble(drawn)),
        reference=False,
        fulfilled=True,
    )


FAMILY = of_seeds("graceful", 300, _plan)
