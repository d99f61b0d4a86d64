"""Other clients' actions on the objects of a cluster: every field changed and removed, every object deleted or created
before it.

`foreign/change/services/basic-pd/spec.type`: another client changes that field in steady state; with the suffix
`@rolling`, right after the first pod of a rolling update was deleted. The fields come from a Ready cluster, with
changes that the API server accepts. The operator must restore its own fields, without a restart that the user's spec
does not require; others may stay (`simulate.families.field_owners`).

`foreign-others/change/services/basic-tiflash-peer/spec.type` is about a component beside PD, TiKV and TiDB, in the
smallest cluster that has it, and `foreign-dm/delete-orphan/statefulsets.apps/sync-dm-master` about a DMCluster.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product, takewhile
from typing import Literal, TypeAlias

from msgspec.structs import replace

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
    Resource,
)
from simulate.engine.components import managed_components
from simulate.engine.engine import Engine
from simulate.engine.other_kinds import DM
from simulate.engine.plan import Created, Deleted, Edit, Fault, Foreign, InvalidPlan, Plan, Stale
from simulate.engine.state import State
from simulate.engine.trees import merged
from simulate.engine.worlds import NAME, replicas_of
from simulate.families.family import Family
from simulate.families.field_changes import Change, Changes, Path
from simulate.families.field_owners import Owners, value_at
from simulate.families.homes import SMALL, Home, all_components, home_of
from simulate.families.users_data import of_all_components
from simulate.run import prepare

_AT = 1.0
_BUDGET = 150.0
"""Seconds, some of which a rolling update takes, and some a deletion that waits for a finalizer."""

_NEVER_JOINED = 210.0
"""Seconds after which pods that cannot join are labelled without an id, as are their claims and volumes."""

_ROLLING = "@rolling"
_A_MOMENT = 0.1
_LATER = 30.0

_LOOKED_AT = (
    STATEFUL_SETS,
    SERVICES,
    CONFIG_MAPS,
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
    DEPLOYMENTS,
    SERVICE_ACCOUNTS,
    ROLES,
    ROLE_BINDINGS,
)
_ROLLED = (STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS, CONFIG_MAPS)
"""The annotation that triggers a rolling update."""

_PARTS = ("metadata", "spec", "data", "rules", "subjects")
"""The parts of these objects with fields to change; their own controllers write the status."""

_COMPONENT = "app.kubernetes.io/component"
_INSTANCE = "app.kubernetes.io/instance"
_OTHERS = f"{CONFIG_MAPS}/others"
"""The owner of foreign objects."""

_BODIES: Mapping[Resource, Json] = {
    PODS: {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}},
    PERSISTENT_VOLUME_CLAIMS: {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
}
"""Foreign objects that resemble the operator's."""

Faults: TypeAlias = tuple[Fault, ...]
Does: TypeAlias = Callable[[float], Faults]
"""Another client's actions, starting at a time in seconds."""
Paths: TypeAlias = tuple[str, ...]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
_PROPAGATIONS: tuple[Propagation, ...] = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class _Scene:
    """A cluster, and the components that other clients act on; if it `is_whole`, also on what belongs to none.

    Each plan creates its own DMCluster.
    """

    family: str
    components: tuple[str, ...]
    is_whole: bool = False

    @property
    def home(self) -> Home:
        """The home of the cluster."""
        return home_of(self.components[0])

    @property
    def kind(self) -> Resource:
        """The kind of the cluster."""
        return DM_CLUSTERS if self.home.is_of_dm else TIDB_CLUSTERS

    @property
    def name(self) -> str:
        """The cluster's name."""
        return DM if self.home.is_of_dm else NAME

    @property
    def target(self) -> str:
        """The cluster as plans name it."""
        return f"{self.kind}/{self.name}"

    def plan(self, name: str, *, world: Literal["steady", "empty"] = "steady", conflict: str = "") -> Plan:
        """A plan about the cluster without events; for `conflict` see `Plan.conflicts`."""
        of_dm = self.home.is_of_dm
        return Plan(
            name=f"{self.family}/{name}",
            # a DMCluster is created in each plan
            world="steady" if of_dm else world,
            cluster=self.home.cluster,
            budget=self.home.begins_at + (_NEVER_JOINED if conflict else _BUDGET),
            edits=self.home.made,
            given=of_all_components(self.home.cluster) if world == "steady" else (),
            conflicts=(conflict,) if conflict and not of_dm else (),
            ends_beside={self.target: "*"} if of_dm and conflict else {},
            reference=not (of_dm and conflict),
        )

    def ready(self) -> Engine:
        """The world in which the cluster is Ready, with the writes that created it."""
        plan = self.plan(self.name)
        engine = prepare(plan)
        if self.home.made:
            engine.begin(plan)
            engine.run(self.home.begins_at)
        return engine

    def state(self, engine: Engine) -> State:
        """The state around the cluster."""
        return State(engine.world, name=self.name, components=self.components if self.home.is_of_dm else ())

    def component(self, tree: Json) -> str:
        """The component that is rolled while other clients act on an object."""
        found: str = tree["metadata"].get("labels", {}).get(_COMPONENT, "")
        there = self.components if self.home.is_of_dm else replicas_of(self.home.cluster)
        return found if found in there else self.components[0] if self.home.is_of_dm else "pd"


@cache
def _plans(scene: _Scene) -> Mapping[str, Plan]:
    """All plans of a scene, by the part of their names after the family."""
    return {plan.name.partition("/")[2]: plan for plan in _of(scene)}


def _of(scene: _Scene) -> Iterator[Plan]:
    engine = scene.ready()
    state, owners, changes = scene.state(engine), Owners(engine.calls), Changes(engine.admin)
    for resource, tree in _objects(scene, state):
        for change in changes.of(resource, tree, *_PARTS):
            yield from _changed(scene, resource, tree, change, owners)
        yield from _deleted(scene, resource, tree)
    if scene.is_whole:
        (whole,) = (each for each in state.all(scene.kind) if each["metadata"]["name"] == scene.name)
        for change in changes.of(scene.kind, whole, "status", subresource="status"):
            yield from _changed(scene, scene.kind, whole, change, owners)
        yield from _made_again(scene)
    made = (each for each in owners.made() if _is_of(scene, each[2]))
    yield from _there_before(scene, made)
    yield from _look_like_ours(scene, state)


def _is_of(scene: _Scene, tree: Json) -> bool:
    """True if other clients act on an object."""
    labels = tree["metadata"].get("labels") or {}
    if scene.is_whole:
        return bool(labels.get(_INSTANCE) == scene.name)
    return labels.get(_COMPONENT) in scene.components


def _objects(scene: _Scene, state: State) -> Iterator[tuple[Resource, Json]]:
    """The objects of the cluster; of equivalent pods and claims, only the first."""
    for resource in _LOOKED_AT:
        for tree in state.all(resource):
            alike = resource in (PODS, PERSISTENT_VOLUME_CLAIMS)
            if _is_of(scene, tree) and (not alike or tree["metadata"]["name"].endswith("-0")):
                yield resource, tree


def _changed(scene: _Scene, resource: Resource, tree: Json, change: Change, owners: Owners) -> Iterator[Plan]:
    target = f"{resource}/{tree['metadata']['name']}"
    fields = list(owners.theirs(resource, tree, change))
    theirs = [_in_end_state(target, path) for path in fields]
    # Kubernetes keeps the configuration of a field beside it, e.g. `sessionAffinityConfig`
    theirs += [f"{path}Config" for path in theirs]
    if any("template" in path for path in fields):
        # and its pods and their readiness
        theirs += [f"{target}.status", f"{PODS}/{tree['metadata']['name']}-*"]
    if change.path == ("spec", "replicas"):
        # desired pods leave their claims behind
        theirs.append(f"{PERSISTENT_VOLUME_CLAIMS}/*-{tree['metadata']['name']}-*")
    if change.path[-1] == "type" and "conditions" in change.path:
        # a condition of its own
        theirs.append(f"{_in_end_state(target, change.path)}[{value_at(change.patch, change.path)}]")

    def does(at: float) -> Faults:
        return (Foreign(at=at, target=target, patch=change.patch, subresource=change.subresource),)

    # growth of a volume cannot be undone
    conflict = tree["metadata"]["name"] if resource == PERSISTENT_VOLUME_CLAIMS else ""
    name = f"{change.verb}/{target}/{change.name}"
    component = scene.component(tree)
    steady, rolling = _at_both_moments(scene, name, component, does, theirs=tuple(theirs), conflict=conflict)
    yield steady
    if resource in _ROLLED or change.verb not in ("remove", "lower"):
        # elsewhere a second plan for the same field adds nothing
        yield rolling


def _in_end_state(target: str, path: Path) -> str:
    """The path of a field, or of the list that contains it."""
    keys = takewhile(lambda step: isinstance(step, str), path)
    return ".".join((target, *map(str, keys)))


def _deleted(scene: _Scene, resource: Resource, tree: Json) -> Iterator[Plan]:
    """Deletions of each kind: plain, unseen for a while, held by a foreign finalizer for a while."""
    name = tree["metadata"]["name"]
    target, there = f"{resource}/{name}", tree["metadata"].get("finalizers", [])

    def unseen(at: float) -> Faults:
        return Stale(at=at, caches=(str(resource),), seconds=_LATER), Deleted(at=at, target=target)

    def held(at: float) -> Faults:
        holding, letting_go = ({"metadata": {"finalizers": each}} for each in ([*there, "example.com/held"], there))
        return (
            Foreign(at=at, target=target, patch=holding),
            Deleted(at=at, target=target),
            Foreign(at=at + _LATER, target=target, patch=letting_go),
        )

    # the deletion of a claim in use cannot be undone
    conflict = name if resource == PERSISTENT_VOLUME_CLAIMS else ""
    ways = {f"delete-{how.lower()}": partial(_deletion, target, how) for how in _PROPAGATIONS}
    for verb, does in (ways | {"delete-unseen": unseen, "delete-held": held}).items():
        yield from _at_both_moments(scene, f"{verb}/{target}", scene.component(tree), does, conflict=conflict)


def _deletion(target: str, propagation: Propagation, at: float) -> Faults:
    return (Deleted(at=at, target=target, propagation=propagation),)


def _made_again(scene: _Scene) -> Iterator[Plan]:
    """The cluster deleted and recreated, immediately and later."""
    target, rolled = scene.target, "dm-worker" if scene.home.is_of_dm else "tikv"
    for how, (when, after) in product(_PROPAGATIONS, (("at-once", _A_MOMENT), ("later", _LATER))):

        def does(at: float, how: Propagation = how, after: float = after) -> Faults:
            return *_deletion(target, how, at), Created(at=at + after, target=target)

        yield from _at_both_moments(scene, f"made-again-{when}/{target}/{how}", rolled, does)


def _there_before(scene: _Scene, made: Iterable[tuple[str, str, Json]]) -> Iterator[Plan]:
    """Objects with the operator's names before the cluster is created: with another owner, without one, with its
    labels.
    """
    for resource, name, body in made:
        target = f"{resource}/{name}"
        ours = body | {
            "metadata": {key: body["metadata"][key] for key in ("labels", "annotations") if key in body["metadata"]}
        }
        foreign = merged(ours, {"metadata": {"labels": None, "annotations": None}})
        if "replicas" in body.get("spec", {}):
            foreign = merged(foreign, {"spec": {"replicas": 0}})
        others = Created(at=0.0, target=_OTHERS), Created(at=0.0, target=target, body=foreign, owner=_OTHERS)
        nobodys = Created(at=0.0, target=target, body=foreign)
        before = partial(scene.plan, world="empty")
        yield replace(before(f"before-of-others/{target}", conflict=name), faults=others)
        yield replace(before(f"before-of-nobody/{target}", conflict=name), faults=(nobodys,))
        like_ours = Created(at=0.0, target=target, body=ours)
        yield replace(before(f"before-with-our-labels/{target}"), faults=(like_ours,))


def _look_like_ours(scene: _Scene, state: State) -> Iterator[Plan]:
    """Foreign pods and claims with the operator's labels, before the cluster is created and later."""
    for component, (resource, body) in product(scene.components, _BODIES.items()):
        labels = state.pods(component)[0]["metadata"]["labels"]
        of_the_app = {key: value for key, value in labels.items() if key.startswith("app.kubernetes.io/")}
        whole, target = {**body, "metadata": {"labels": of_the_app}}, f"{resource}/others-{component}"

        def does(at: float, target: str = target, whole: Json = whole) -> Faults:
            return Created(at=at, target=_OTHERS), Created(at=at, target=target, body=whole, owner=_OTHERS)

        # Services route to a pod with such labels, which only its owner can remove
        conflict = f"others-{component}" if resource == PODS else ""
        named = f"look-like-ours/{target}"
        plans = [*_at_both_moments(scene, named, component, does, theirs=(_OTHERS, target), conflict=conflict)]
        yield from plans
        empty = scene.plan(f"{named}@empty", world="empty", conflict=conflict)
        yield replace(empty, faults=does(0.0), given=plans[0].given, theirs=plans[0].theirs)


def _at_both_moments(
    scene: _Scene, name: str, component: str, does: Does, *, theirs: Paths = (), conflict: str = ""
) -> Iterator[Plan]:
    """In steady state, and in the middle of a component's rolling update."""
    plan = replace(scene.plan(name, conflict=conflict), theirs=theirs)
    yield replace(plan, faults=does(scene.home.begins_at + _AT))
    edits, at = (*plan.edits, _roll(scene, component)), _rolling_at(scene, component)
    yield replace(plan, name=f"{plan.name}{_ROLLING}", edits=edits, faults=does(at))


def _roll(scene: _Scene, component: str) -> Edit:
    home = Home(component, scene.home.cluster)
    return home.merge(home.begins_at + _AT, {"annotations": {"roll": "1"}})


@cache
def _rolling_at(scene: _Scene, component: str) -> float:
    """When the first pod of a component's rolling update has just been deleted."""
    plan = scene.plan(scene.name)
    engine = prepare(plan)
    engine.begin(replace(plan, edits=(*plan.edits, _roll(scene, component))))
    engine.run(scene.home.begins_at)
    state = scene.state(engine)
    uid = {pod["metadata"]["uid"] for pod in state.pods(component).values()}
    while uid == {pod["metadata"]["uid"] for pod in state.pods(component).values()}:
        engine.run(_A_MOMENT)
    return round(engine.elapsed, 3)


def _family(name: str, *clusters: tuple[str, ...], is_whole: bool = False) -> Family:
    """Actions on some components of each cluster. A scene is prepared only when its first plan is needed."""
    scenes = [_Scene(name, components, is_whole) for components in clusters]

    def plan(rest: str) -> Plan:
        named = [scene for scene in scenes if any(f"-{component}" in rest for component in scene.components)]
        for scene in named or scenes:
            if rest in _plans(scene):
                return _plans(scene)[rest]
        raise InvalidPlan(f"{rest!r} is nothing that others do; `python -m simulate sweep {name}` runs all there are")

    return Family(name, plan, lambda: (plan for scene in scenes for plan in _plans(scene).values()))


def _others() -> Iterator[tuple[str, ...]]:
    """The components of TidbClusters beside PD, TiKV and TiDB, grouped by their home."""
    others = [component for component in managed_components() if component not in replicas_of(SMALL)]
    for cluster in dict.fromkeys(home_of(each).cluster for each in others):
        yield tuple(each for each in others if home_of(each).cluster == cluster)


FAMILY = _family("foreign", tuple(replicas_of(SMALL)), is_whole=True)
"""PD, TiKV and TiDB, and objects that belong to no component."""
OTHERS = _family("foreign-others", *_others())
"""The other components."""
OF_DM = _family("foreign-dm", tuple(each for each in all_components() if home_of(each).is_of_dm), is_whole=True)
"""A DMCluster."""
