"""The rehearsal of a change of manifests, and the world that it takes place in.

The world has what the manifests ask for: machines with the labels that node selectors name, with room for every pod,
in three zones; StorageClasses by their names; the certificates of clusters with TLS. It has no history: the servers
take as long as in a typical cluster, and the database is empty.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from apis.accessor import COMPONENT_LABEL, workloads
from apis.cluster import WITHOUT_EFFECT
from apis.cluster_kinds import CLUSTER_MODELS
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.ordinals import desired_replicas
from kube.client import Client
from kube.errors import AlreadyExists
from kube.objects import Json, condition_of
from kube.resources import (
    CONFIG_MAPS,
    DM_CLUSTERS,
    NAMESPACES,
    PODS,
    SECRETS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    Resource,
)
from rehearsal.forecast import Forecast, Frame, Pod, forecast
from rehearsal.operator import SETTINGS
from rehearsal.stage import CannotRehearse, Stage
from rehearsal.twin import Twin
from sandbox.controllers.volumes import standard_storage_class
from sandbox.kubelet.nodes import NodeSpec
from sandbox.timings import Timings

APPLIED: Mapping[str, Resource] = {
    "TidbCluster": TIDB_CLUSTERS,
    "DMCluster": DM_CLUSTERS,
    "Secret": SECRETS,
    "ConfigMap": CONFIG_MAPS,
}
"""The kinds that have an effect on clusters."""

ZONES = 3
"""The zones of the machines."""

_LONGEST = 6 * 3600.0
"""The seconds after which a change that still makes progress counts as stuck."""
_PATIENCE = 10 * 60.0
"""The seconds without progress after which it counts as stuck: longer than a failover takes."""
_REFUSED = 60.0
"""The seconds for which a refusal must last."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The forecasts of a change by cluster, e.g. `TidbCluster default/basic`, and the machines that it assumes."""

    forecasts: Mapping[str, Forecast]
    nodes: int


def rehearse(before: Sequence[Json], after: Sequence[Json], began: datetime) -> Rehearsed:
    """Bring the clusters of `before` up, then apply `after`. Both are lists of objects; `before` may be empty.

    Objects that only `before` has stay as they are. `began` is the time of day at the beginning. Raises CannotRehearse,
    InvalidField for a cluster that cannot be decoded, and ApiError for an object that the API server rejects.
    """
    clusters = [each for each in (*before, *after) if each["kind"] in CLUSTER_MODELS]
    nodes = list(_nodes(clusters))
    with Stage(nodes, began, Timings.real()) as world:
        world.enter(replace(SETTINGS, rechecks=False))
        _prepare(world.admin, (*before, *after))
        for each in before:
            _put(world.admin, each)
        _bring_up(world, [each for each in before if each["kind"] in CLUSTER_MODELS])
        forecasts = _change(world, [each for each in after if each["kind"] in CLUSTER_MODELS], after)
        return Rehearsed(forecasts, len(nodes))


def rehearse_on(twin: Twin, after: Sequence[Json]) -> Rehearsed:
    """Apply `after` to the twin of a running cluster. For the exceptions see `rehearse`."""
    world = twin.stage
    changed = [each for each in after if each["kind"] in CLUSTER_MODELS]
    clusters = {_key(each): each for each in (*twin.clusters, *changed)}
    world.enter(twin.settings)
    _come_to_rest(world, twin.clusters)
    _prepare(world.admin, after)
    return Rehearsed(_change(world, list(clusters.values()), after), twin.nodes)


def _come_to_rest(world: Stage, clusters: Sequence[Json]) -> None:
    """Let the operator write what it wants anyway. Raises CannotRehearse if that restarts pods or does not end."""
    films = [_Film(world, each, world.clock.now()) for each in clusters]
    watcher = _Watcher(world, films)
    world.run(watcher.is_over, _LONGEST, watcher.look)
    for film in films:
        found = forecast(film.frames)
        if found.end == "stuck":
            raise CannotRehearse(f"{film.key} does not come to rest in the twin: {found.message}")
        if found.steps:
            first, why = found.steps[0], "`kubectl tidb diff` shows why"
            raise CannotRehearse(f"pod {first.pod} {first.act} in the twin before the change; {why}")


def _change(world: Stage, clusters: Sequence[Json], after: Sequence[Json]) -> Mapping[str, Forecast]:
    """Apply objects, and watch the clusters until nothing more happens."""
    films = {_key(each): _Film(world, each, world.clock.now()) for each in clusters}
    for each in after:
        _put(world.admin, each)
    watcher = _Watcher(world, list(films.values()))
    world.run(watcher.is_over, _LONGEST, watcher.look)
    return {key: forecast(film.frames) for key, film in films.items()}


def _key(cluster: Json) -> str:
    return f"{cluster['kind']} {_namespace(cluster)}/{cluster['metadata']['name']}"


def _namespace(tree: Json) -> str:
    return str(tree["metadata"].get("namespace") or "default")


# The world before the change


def _prepare(admin: Client, objects: Iterable[Json]) -> None:
    """Create the namespaces and StorageClasses that the objects name."""
    for tree in objects:
        _create(admin, NAMESPACES, {"metadata": {"name": _namespace(tree)}}, "")
        for name in _values(tree.get("spec"), "storageClassName"):
            named = standard_storage_class()
            _create(admin, STORAGE_CLASSES, named | {"metadata": {"name": name}}, "")


def _create(admin: Client, resource: Resource, tree: Json, namespace: str) -> None:
    with contextlib.suppress(AlreadyExists):
        admin.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind} | tree, namespace)


def _values(tree: Any, key: str) -> Iterator[str]:
    """The texts at a key, at any depth."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key and isinstance(value, str) and value:
                yield value
            yield from _values(value, key)
    elif isinstance(tree, list):
        for each in tree:
            yield from _values(each, key)


def _put(admin: Client, tree: Json) -> None:
    """Create an object, or replace the content that a user writes; other users' labels and annotations stay.

    Kinds without an effect on clusters are left out.
    """
    resource = APPLIED.get(tree["kind"])
    if resource is None:
        return
    namespace, name = _namespace(tree), tree["metadata"]["name"]
    there = admin.find(resource, name, namespace)
    if there is None:
        admin.create(resource, tree, namespace)
        return
    body, meta = there.decode(), tree["metadata"]
    theirs = {key: (body["metadata"].get(key) or {}) | (meta.get(key) or {}) for key in ("labels", "annotations")}
    content = {key: value for key, value in tree.items() if key not in ("metadata", "status")}
    admin.replace(resource, name, namespace, body | content | {"metadata": body["metadata"] | theirs})


def _nodes(clusters: Iterable[Json]) -> Iterator[NodeSpec]:
    """Machines in three zones for each node selector, as many as the largest component has pods."""
    groups: dict[tuple[tuple[str, str], ...], int] = {(): ZONES}
    for tree in clusters:
        tc = with_defaults(decode(tree, CLUSTER_MODELS[tree["kind"]]))
        for each in workloads(tc):
            labels = tuple(sorted((each.node_selector | _required_labels(each.affinity or {})).items()))
            groups[labels] = max(groups.get(labels, ZONES), desired_replicas(tc, each.name))
    numbers = count()
    for labels, size in groups.items():
        for index in range(size):
            number = next(numbers)
            name, address = f"node-{number}", f"192.168.{number // 200}.{number % 200 + 10}"
            zone = dict(labels).get("topology.kubernetes.io/zone") or f"zone-{index % ZONES}"
            yield NodeSpec(name, address, zone, cpu="1000", memory="8Ti", labels=dict(labels))


def _required_labels(affinity: Json) -> dict[str, str]:
    """Labels of a machine that the first term of a required node affinity accepts."""
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    (term,) = (required.get("nodeSelectorTerms") or [{}])[:1]
    found = {}
    for each in term.get("matchExpressions") or ():
        if each.get("operator") in ("In", "Exists"):
            found[str(each.get("key"))] = str((each.get("values") or ["true"])[0])
    return found


def _bring_up(world: Stage, clusters: Sequence[Json]) -> None:
    films = [_Film(world, each, world.clock.now()) for each in clusters]
    watcher = _Watcher(world, films)
    if not world.run(watcher.is_over, _LONGEST, watcher.look) or not all(film.frames[-1].is_over for film in films):
        film = next(film for film in films if not film.frames[-1].is_over)
        raise CannotRehearse(f"{film.key} does not become Ready before the change: {film.frames[-1].message}")
    world.run(lambda: False, _REFUSED)


# What happens to a cluster


class _Film:
    """The frames of one cluster."""

    def __init__(self, world: Stage, cluster: Json, began: float) -> None:
        self.key = _key(cluster)
        self._world = world
        self._resource = APPLIED[cluster["kind"]]
        self._namespace, self._name = _namespace(cluster), cluster["metadata"]["name"]
        self._began = began
        self.frames: list[Frame] = [self._frame()]

    def look(self) -> bool:
        """Add a frame if something has changed; return True if more than words have."""
        frame, last = self._frame(), self.frames[-1]
        is_news = not frame.looks_like(last)
        words, last_words = (frame.message, frame.warnings), (last.message, last.warnings)
        if is_news or words != last_words or frame.is_ready != last.is_ready:
            self.frames.append(frame)
        return is_news

    def _frame(self) -> Frame:
        mirror = self._world.world.mirror
        tree = mirror.get(self._resource, self._namespace, self._name) or {}
        uid = (tree.get("metadata") or {}).get("uid")
        sets = [each for each in mirror.list(STATEFUL_SETS, self._namespace) if uid and _controller(each) == uid]
        by_uid = {each["metadata"]["uid"]: each["metadata"]["labels"][COMPONENT_LABEL] for each in sets}
        pods = (each for each in mirror.list(PODS, self._namespace) if _controller(each) in by_uid)
        conditions = (tree.get("status") or {}).get("conditions") or ()
        progressing = condition_of(conditions, "Progressing")
        without_effect = (condition_of(conditions, kind) for kind in WITHOUT_EFFECT)
        return Frame(
            at=self._world.clock.now() - self._began,
            pods={each["metadata"]["name"]: _pod(each, by_uid[_controller(each)]) for each in pods},
            replicas={by_uid[each["metadata"]["uid"]]: each["spec"]["replicas"] for each in sets},
            is_ready=condition_of(conditions, "Ready").get("status") == "True",
            is_waiting=progressing.get("status") == "True",
            reason=str(progressing.get("reason") or ""),
            message=str(progressing.get("message") or ""),
            warnings=[str(each.get("message")) for each in without_effect if each.get("status") == "True"],
        )


def _controller(tree: Json) -> str:
    owners = tree["metadata"].get("ownerReferences") or ()
    return next((str(each["uid"]) for each in owners if each.get("controller")), "")


def _pod(tree: Json, component: str) -> Pod:
    meta = tree["metadata"]
    conditions = (tree.get("status") or {}).get("conditions") or ()
    is_ready = condition_of(conditions, "Ready").get("status") == "True"
    node = str(tree["spec"].get("nodeName") or "")
    return Pod(meta["uid"], component, node, is_ready, meta.get("deletionTimestamp") is not None)


class _Watcher:
    """Decides when nothing more will happen: all is done, refused, or has stood still for long."""

    def __init__(self, world: Stage, films: Sequence[_Film]) -> None:
        self._clock = world.clock
        self._films = films
        self._since = world.clock.now()

    def look(self) -> None:
        """Look at all clusters."""
        is_news = [film.look() for film in self._films]
        if any(is_news):
            self._since = self._clock.now()

    def is_over(self) -> bool:
        """True if nothing more will happen."""
        quiet = self._clock.now() - self._since
        last = [film.frames[-1] for film in self._films]
        if all(each.is_over or each.is_held or each.is_refused for each in last):
            return quiet >= _REFUSED
        return quiet >= _PATIENCE
