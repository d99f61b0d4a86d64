"""The rehearsal of a change of manifests, and the world that it takes place in.

The world has what the manifests ask for: machines with the labels that node selectors name, with room for every pod,
in three zones; StorageClasses by their names; the certificates of clusters with TLS. It has no history: the servers
take as long as in a typical cluster, and the database is empty.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from apis.accessor import workloads
from apis.cluster_kinds import CLUSTER_MODELS
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.ordinals import desired_replicas
from kube.client import Client
from kube.errors import AlreadyExists
from kube.field_change import FieldChange, all_differences
from kube.objects import Json
from kube.resources import CONFIG_MAPS, DM_CLUSTERS, NAMESPACES, SECRETS, STORAGE_CLASSES, TIDB_CLUSTERS, Resource
from member.context import Settings
from rehearsal.film import Film, Watcher
from rehearsal.forecast import Forecast, after_steps, forecast
from rehearsal.operator import SETTINGS
from rehearsal.stage import PACE, CannotRehearse, Stage
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

LONGEST = 6 * 3600.0
"""The seconds after which a change that still makes progress counts as stuck."""
_SETTLES = 60.0
"""The seconds for which nothing happens between the clusters' creation and the change."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The forecasts of a change by cluster, e.g. `TidbCluster default/basic`, and the machines that it assumes.

    `changes` are the fields that change, by object; it lacks objects that are new.
    """

    forecasts: Mapping[str, Forecast]
    nodes: int
    changes: Mapping[str, Sequence[FieldChange]]


@dataclass(frozen=True, slots=True)
class Scene:
    """A world at rest, with its clusters as they are before a change. `nodes` is the number of machines."""

    stage: Stage
    settings: Settings
    clusters: Sequence[Json]
    nodes: int

    def films(self, changed: Iterable[Json] = ()) -> Mapping[str, Film]:
        """Films of all clusters, and of those that `changed` adds, from now on, by cluster."""
        clusters = {_key(each): each for each in (*self.clusters, *changed)}
        world, began = self.stage.world, self.stage.clock.now()
        return {
            key: Film(world, APPLIED[each["kind"]], _namespace(each), each["metadata"]["name"], began)
            for key, each in clusters.items()
        }

    def watch(self, films: Mapping[str, Film]) -> bool:
        """Let time pass until nothing more happens to the clusters; False if that takes longer than hours."""
        watcher = Watcher(self.stage.clock, list(films.values()))
        return self.stage.run(watcher.is_over, LONGEST, watcher.look)


def rehearse(before: Sequence[Json], after: Sequence[Json], began: datetime) -> Rehearsed:
    """Bring the clusters of `before` up, then apply `after`. Both are lists of objects; `before` may be empty.

    Objects that only `before` has stay as they are. `began` is the time of day at the beginning. Raises CannotRehearse,
    InvalidField for a cluster that cannot be decoded, and ApiError for an object that the API server rejects.
    """
    with built(before, after, began) as scene:
        return _rehearsed(scene, after)


def rehearse_on(twin: Twin, after: Sequence[Json]) -> Rehearsed:
    """Apply `after` to the twin of a running cluster. For the exceptions see `rehearse`."""
    return _rehearsed(entered(twin, after), after)


def finish(twin: Twin) -> Rehearsed:
    """Let the twin of a cluster that is changing continue; the forecasts are of what is left.

    Pods that were not Ready come first: they have started in the twin before its operator entered.
    """
    twin.stage.enter(twin.settings)
    scene = Scene(twin.stage, twin.settings, twin.clusters, twin.nodes)
    films = scene.films()
    scene.watch(films)
    own, *others = films
    forecasts = {own: after_steps(twin.starting, forecast(films[own].frames))}
    return Rehearsed(forecasts | {key: forecast(films[key].frames) for key in others}, scene.nodes, {})


@contextmanager
def built(before: Sequence[Json], after: Sequence[Json], began: datetime) -> Iterator[Scene]:
    """A world with the clusters of `before`, all Ready, and with room for `after`. Raises as `rehearse`."""
    clusters = [each for each in (*before, *after) if each["kind"] in CLUSTER_MODELS]
    nodes = list(_nodes(clusters))
    with Stage(nodes, began, Timings.real(), pace=PACE) as stage:
        settings = replace(SETTINGS, rechecks=False)
        stage.enter(settings)
        _prepare(stage.admin, (*before, *after))
        for each in before:
            _put(stage.admin, each)
        there = [each for each in before if each["kind"] in CLUSTER_MODELS]
        scene = Scene(stage, settings, there, len(nodes))
        _bring_up(scene)
        yield scene


def entered(twin: Twin, after: Sequence[Json] = ()) -> Scene:
    """The twin once its operator has nothing left to do, with what the objects `after` name. Raises CannotRehearse."""
    twin.stage.enter(twin.settings)
    scene = Scene(twin.stage, twin.settings, twin.clusters, twin.nodes)
    _come_to_rest(scene)
    _prepare(twin.stage.admin, after)
    return scene


def _come_to_rest(scene: Scene) -> None:
    """Let the operator write what it wants anyway. Raises CannotRehearse if that restarts pods or does not end."""
    films = scene.films()
    scene.watch(films)
    for key, film in films.items():
        found = forecast(film.frames)
        if found.end == "stuck":
            raise CannotRehearse(f"{key} does not come to rest in the twin: {found.message}")
        if found.steps:
            first, why = found.steps[0], "`kubectl tidb diff` shows why"
            raise CannotRehearse(f"pod {first.pod} {first.act} in the twin before the change; {why}")


def change(scene: Scene, after: Sequence[Json]) -> Mapping[str, Forecast]:
    """Apply objects, and watch the clusters until nothing more happens."""
    return _rehearsed(scene, after).forecasts


def _rehearsed(scene: Scene, after: Sequence[Json]) -> Rehearsed:
    films = scene.films(clusters_of(after))
    changes = put(scene, after)
    scene.watch(films)
    return Rehearsed({key: forecast(film.frames) for key, film in films.items()}, scene.nodes, changes)


def clusters_of(objects: Iterable[Json]) -> list[Json]:
    """The clusters among objects."""
    return [item for item in objects if item["kind"] in CLUSTER_MODELS]


def put(scene: Scene, objects: Iterable[Json]) -> Mapping[str, Sequence[FieldChange]]:
    """Create or replace objects, as a user does. Returns the fields that change, by object."""
    found = ((_key(item), _put(scene.stage.admin, item)) for item in objects)
    return {key: changes for key, changes in found if changes}


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


def _put(admin: Client, tree: Json) -> Sequence[FieldChange]:
    """Create an object, or replace the content that a user writes; other users' labels and annotations stay.

    Kinds without an effect on clusters are left out. Returns the fields of an existing object that change.
    """
    resource = APPLIED.get(tree["kind"])
    if resource is None:
        return ()
    namespace, name = _namespace(tree), tree["metadata"]["name"]
    there = admin.find(resource, name, namespace)
    if there is None:
        admin.create(resource, tree, namespace)
        return ()
    body, meta = there.decode(), tree["metadata"]
    theirs = {key: (body["metadata"].get(key) or {}) | (meta.get(key) or {}) for key in ("labels", "annotations")}
    content = {key: value for key, value in tree.items() if key not in ("metadata", "status")}
    put = admin.replace(resource, name, namespace, body | content | {"metadata": body["metadata"] | theirs})
    return list(all_differences(_written(body), _written(put.decode())))


def _written(tree: Json) -> Json:
    """What a user writes of an object."""
    meta = {key: tree["metadata"].get(key) for key in ("labels", "annotations")}
    return {key: value for key, value in tree.items() if key != "status"} | {"metadata": meta}


def _nodes(clusters: Iterable[Json]) -> Iterator[NodeSpec]:
    """Machines in three zones for each node selector, as many as the largest component has pods."""
    groups: dict[tuple[tuple[str, str], ...], int] = {(): ZONES}
    for tree in clusters:
        tc = with_defaults(decode(tree, CLUSTER_MODELS[tree["kind"]]))
        for workload in workloads(tc):
            labels = tuple(sorted((workload.node_selector | _required_labels(workload.affinity or {})).items()))
            groups[labels] = max(groups.get(labels, ZONES), desired_replicas(tc, workload.name))
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


def _bring_up(scene: Scene) -> None:
    films = scene.films()
    scene.watch(films)
    for key, film in films.items():
        if not film.frames[-1].is_over:
            raise CannotRehearse(f"{key} does not become Ready before the change: {film.frames[-1].message}")
    scene.stage.run(lambda: False, _SETTLES)
