"""What others do to the objects of a cluster: every field changed and removed, every object deleted or there before it.

`foreign/change/services/basic-pd/spec.type` has another hand change that field in steady state; with `@rolling` behind
it, right after the first pod of a roll has gone. The fields are those of a Ready cluster, and the changes those that
its API server takes. What was the operator's word must be restored, without a restart that the user's spec did not ask
for; what was not may stay (`simulate.field_owners`).

`foreign-others/change/services/basic-tiflash-peer/spec.type` is about a component beside PD, TiKV and TiDB, in the
smallest cluster that has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import product, takewhile
from typing import Literal, TypeAlias

from msgspec.structs import replace

from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
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
from simulate.components import managed_components
from simulate.field_changes import Change, Changes, Path
from simulate.field_owners import Owners, value_at
from simulate.homes import SMALL, Home, home_of
from simulate.plan import Created, Deleted, Edit, Fault, Foreign, InvalidPlan, Plan, Stale
from simulate.run import prepare
from simulate.state import State
from simulate.trees import merged
from simulate.users_data import of_all_components
from simulate.worlds import NAME, replicas_of

FAMILY = "foreign"
OTHERS = "foreign-others"

_AT = 1.0
_BUDGET = 150.0
"""Seconds, some of which a roll takes, and some a deletion that waits for a finalizer."""

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
"""What a roll goes by."""

_PARTS = ("metadata", "spec", "data", "rules", "subjects")
"""Where the fields of these are; their status is their own controllers'."""

_COMPONENT = "app.kubernetes.io/component"
_INSTANCE = "app.kubernetes.io/instance"
_OTHERS = f"{CONFIG_MAPS}/others"
"""Who controls what others have made."""

_BODIES: Mapping[Resource, Json] = {
    PODS: {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}},
    PERSISTENT_VOLUME_CLAIMS: {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
}
"""What others make that may look like ours."""

Faults: TypeAlias = tuple[Fault, ...]
Does: TypeAlias = Callable[[float], Faults]
"""What others do, beginning at a time in seconds."""
Paths: TypeAlias = tuple[str, ...]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
_PROPAGATIONS: tuple[Propagation, ...] = ("Background", "Foreground", "Orphan")


def foreign(rest: str) -> Plan:
    """The plan called `foreign/<rest>`. Raises InvalidPlan."""
    return _known(FAMILY, rest, SMALL)


def foreign_to_others(rest: str) -> Plan:
    """The plan called `foreign-others/<rest>`. Raises InvalidPlan."""
    owner = next((each for each in _others() if f"{NAME}-{each}" in rest or f"others-{each}" in rest), "tso")
    return _known(OTHERS, rest, home_of(owner).cluster)


def _known(family: str, rest: str, cluster: str) -> Plan:
    known = _plans(cluster)
    if rest not in known:
        raise InvalidPlan(f"{rest!r} is nothing that others do; `python -m simulate sweep {family}` does all there is")
    return known[rest]


def foreign_hands() -> Iterator[Plan]:
    """All of PD, TiKV and TiDB, and of what is not of a component."""
    return iter(_plans(SMALL).values())


def foreign_hands_of_others() -> Iterator[Plan]:
    """All of the components beside these."""
    clusters = dict.fromkeys(home_of(each).cluster for each in _others())
    return (plan for cluster in clusters for plan in _plans(cluster).values())


def _family(cluster: str) -> str:
    return FAMILY if cluster == SMALL else OTHERS


def _others() -> list[str]:
    """The components beside PD, TiKV and TiDB."""
    return [each for each in managed_components() if each not in replicas_of(SMALL)]


@cache
def _plans(cluster: str) -> Mapping[str, Plan]:
    """All plans of a cluster, by the part of their names behind the family."""
    plans = _of_all(cluster) if cluster == SMALL else _of_others(cluster)
    return {plan.name.partition("/")[2]: plan for plan in plans}


def _of_all(cluster: str) -> Iterator[Plan]:
    engine = prepare(Plan(name=FAMILY, cluster=cluster))
    state, owners, changes = State(engine.world), Owners(engine.calls), Changes(engine.admin)
    for resource, tree in _objects(state):
        for change in changes.of(resource, tree, *_PARTS):
            yield from _changed(cluster, resource, tree, change, owners)
        yield from _deleted(cluster, resource, tree)
    tc = state.cluster
    assert tc is not None
    for change in changes.of(TIDB_CLUSTERS, tc, "status", subresource="status"):
        yield from _changed(cluster, TIDB_CLUSTERS, tc, change, owners)
    yield from _made_again(cluster)
    yield from _there_before(cluster, owners.made())
    yield from _look_like_ours(cluster, state, replicas_of(cluster))


def _of_others(cluster: str) -> Iterator[Plan]:
    """What is done to the components that the small cluster has not."""
    engine = prepare(Plan(name=FAMILY, cluster=cluster))
    state, owners, changes = State(engine.world), Owners(engine.calls), Changes(engine.admin)
    there = [each for each in replicas_of(cluster) if each in _others()]
    for resource, tree in _objects(state):
        if tree["metadata"]["labels"].get(_COMPONENT) in there:
            for change in changes.of(resource, tree, *_PARTS):
                yield from _changed(cluster, resource, tree, change, owners)
            yield from _deleted(cluster, resource, tree)
    made = (each for each in owners.made() if (each[2]["metadata"].get("labels") or {}).get(_COMPONENT) in there)
    yield from _there_before(cluster, made)
    yield from _look_like_ours(cluster, state, there)


def _objects(state: State) -> Iterator[tuple[Resource, Json]]:
    """The objects of the cluster; of pods and claims that are alike, the first."""
    for resource in _LOOKED_AT:
        for tree in state.all(resource):
            meta = tree["metadata"]
            alike = resource in (PODS, PERSISTENT_VOLUME_CLAIMS)
            if meta.get("labels", {}).get(_INSTANCE) == NAME and (not alike or meta["name"].endswith("-0")):
                yield resource, tree


def _changed(cluster: str, resource: Resource, tree: Json, change: Change, owners: Owners) -> Iterator[Plan]:
    target = f"{resource}/{tree['metadata']['name']}"
    fields = list(owners.theirs(resource, tree, change))
    theirs = [_in_end_state(target, path) for path in fields]
    # Kubernetes keeps what configures a field beside it, as `sessionAffinityConfig`
    theirs += [f"{path}Config" for path in theirs]
    if any("template" in path for path in fields):
        # and with them its pods, and whether they run
        theirs += [f"{target}.status", f"{PODS}/{tree['metadata']['name']}-*"]
    if change.path == ("spec", "replicas"):
        # pods that were asked for leave their claims behind
        theirs.append(f"{PERSISTENT_VOLUME_CLAIMS}/*-{tree['metadata']['name']}-*")
    if change.path[-1] == "type" and "conditions" in change.path:
        # a condition of their own
        theirs.append(f"{_in_end_state(target, change.path)}[{value_at(change.patch, change.path)}]")

    def does(at: float) -> Faults:
        return (Foreign(at=at, target=target, patch=change.patch, subresource=change.subresource),)

    # what a volume has grown by can't be taken back
    conflict = tree["metadata"]["name"] if resource == PERSISTENT_VOLUME_CLAIMS else ""
    name = f"{change.verb}/{target}/{change.name}"
    component = _component(cluster, tree)
    plans = _at_both_moments(cluster, name, component, does, theirs=tuple(theirs), conflict=conflict)
    steady, rolling = plans
    yield steady
    if resource in _ROLLED or change.verb not in ("remove", "lower"):
        # elsewhere a second way to change the same field would tell nothing new
        yield rolling


def _in_end_state(target: str, path: Path) -> str:
    """The path of a field, or of the list that it is in."""
    keys = takewhile(lambda step: isinstance(step, str), path)
    return ".".join((target, *map(str, keys)))


def _deleted(cluster: str, resource: Resource, tree: Json) -> Iterator[Plan]:
    """Deleted in each way, unseen for a while, and held by a finalizer of others for a while."""
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

    # the deletion of a claim that a pod uses can't be taken back
    conflict = name if resource == PERSISTENT_VOLUME_CLAIMS else ""
    ways = {f"delete-{how.lower()}": partial(_deletion, target, how) for how in _PROPAGATIONS}
    for verb, does in (ways | {"delete-unseen": unseen, "delete-held": held}).items():
        yield from _at_both_moments(cluster, f"{verb}/{target}", _component(cluster, tree), does, conflict=conflict)


def _deletion(target: str, propagation: Propagation, at: float) -> Faults:
    return (Deleted(at=at, target=target, propagation=propagation),)


def _made_again(cluster: str) -> Iterator[Plan]:
    """The TidbCluster deleted and put back as it was, at once and later."""
    target = f"{TIDB_CLUSTERS}/{NAME}"
    for how, (when, after) in product(_PROPAGATIONS, (("at-once", _A_MOMENT), ("later", _LATER))):

        def does(at: float, how: Propagation = how, after: float = after) -> Faults:
            return *_deletion(target, how, at), Created(at=at + after, target=target)

        yield from _at_both_moments(cluster, f"made-again-{when}/{target}/{how}", "tikv", does)


def _there_before(cluster: str, made: Iterable[tuple[str, str, Json]]) -> Iterator[Plan]:
    """Objects with the names of ours before the cluster is created: of another owner, of nobody, with our labels."""
    plan = Plan(name=_family(cluster), world="empty", cluster=cluster, budget=_BUDGET)
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
        yield replace(plan, name=f"{plan.name}/before-of-others/{target}", faults=others, conflict=name)
        yield replace(plan, name=f"{plan.name}/before-of-nobody/{target}", faults=(nobodys,), conflict=name)
        like_ours = Created(at=0.0, target=target, body=ours)
        yield replace(plan, name=f"{plan.name}/before-with-our-labels/{target}", faults=(like_ours,))


def _look_like_ours(cluster: str, state: State, components: Iterable[str]) -> Iterator[Plan]:
    """Pods and claims of others with the labels of ours, before the cluster is created and later."""
    for component, (resource, body) in product(components, _BODIES.items()):
        labels = state.pods(component)[0]["metadata"]["labels"]
        of_the_app = {key: value for key, value in labels.items() if key.startswith("app.kubernetes.io/")}
        whole, target = {**body, "metadata": {"labels": of_the_app}}, f"{resource}/others-{component}"

        def does(at: float, target: str = target, whole: Json = whole) -> Faults:
            return Created(at=at, target=_OTHERS), Created(at=at, target=target, body=whole, owner=_OTHERS)

        # Services lead to a pod with such labels, which only its owner can take away
        conflict = f"others-{component}" if resource == PODS else ""
        named = f"look-like-ours/{target}"
        plans = [*_at_both_moments(cluster, named, component, does, theirs=(_OTHERS, target), conflict=conflict)]
        yield from plans
        yield replace(plans[0], name=f"{plans[0].name}@empty", world="empty", faults=does(0.0))


def _at_both_moments(
    cluster: str, name: str, component: str, does: Does, *, theirs: Paths = (), conflict: str = ""
) -> Iterator[Plan]:
    """In steady state, and in the middle of a roll of a component."""
    plan = Plan(
        name=f"{_family(cluster)}/{name}",
        cluster=cluster,
        budget=_BUDGET,
        given=of_all_components(cluster),
        theirs=theirs,
        conflict=conflict,
    )
    yield replace(plan, faults=does(_AT))
    at = _rolling_at(cluster, component)
    yield replace(plan, name=f"{plan.name}{_ROLLING}", edits=(_roll(cluster, component),), faults=does(at))


def _component(cluster: str, tree: Json) -> str:
    """The component that is rolled together with what others do to an object."""
    component: str = tree["metadata"].get("labels", {}).get(_COMPONENT, "")
    return component if component in replicas_of(cluster) else "pd"


def _roll(cluster: str, component: str) -> Edit:
    return Home(component, cluster).merge(_AT, {"annotations": {"roll": "1"}})


@cache
def _rolling_at(cluster: str, component: str) -> float:
    """When the first pod of a roll of a component has just gone."""
    edits, given = (_roll(cluster, component),), of_all_components(cluster)
    plan = Plan(name=FAMILY, cluster=cluster, edits=edits, given=given)
    engine = prepare(plan)
    state = State(engine.world)
    uid = {pod["metadata"]["uid"] for pod in state.pods(component).values()}
    engine.begin(plan)
    while uid == {pod["metadata"]["uid"] for pod in state.pods(component).values()}:
        engine.run(_A_MOMENT)
    return round(engine.elapsed, 3)
