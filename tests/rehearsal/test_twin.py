"""The twin of a running cluster is that cluster: the operator has as little to do in it, and does the same to it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import ADVANCED_STATEFUL_SETS, DM_CLUSTERS, NODES, PODS, SECRETS, STATEFUL_SETS
from manifests import ADVANCED_STATEFUL_SET
from member.context import RESOURCES
from member.labels import RESTART_PRIORITY
from ports.clock import FakeClock
from rehearsal.change import finish, rehearse_on
from rehearsal.operator import SETTINGS
from rehearsal.recording import READ, Recording, record
from rehearsal.stage import PACE, CannotRehearse
from rehearsal.twin import Twin, twin_of
from sandbox.apiserver.audit import Call
from sandbox.apiserver.faults import Fault
from sandbox.apiserver.refusals import Refusal
from sandbox.timings import Timings
from sandbox.world import load_crds
from tests.operator_world import NAMESPACE, OperatorWorld, definitions, sample
from tests.takeover.left_by_v16 import Left
from tests.takeover.observer import planned_writes
from tests.takeover.our_own import DIRECTORY
from tests.takeover.test_recordings import RECORDINGS, left_by_v16

READER = "reader"

OF_EVERY_RUN = ("dev-components", "dev-dm", "heterogeneous")
"""The recordings of which every run makes twins."""

WITHOUT_TWIN = {"sleepy": "is not Ready", "fts": "is not Ready", "north": "shares its PD with south-pd-0"}
"""Recorded clusters that have no twin, with the reason."""


_SLOT = {"tikv.tidb.pingcap.com/delete-slots": "[1]"}


def _forbidding(resources: Sequence[str]) -> Callable[[Call], Fault | None]:
    """A reader may not list these resources."""

    def forbid(call: Call) -> Fault | None:
        is_forbidden = call.user == READER and call.resource in resources
        return Fault(refusal=Refusal(403, "Forbidden", "may not list")) if is_forbidden else None

    return forbid


@pytest.fixture
def unreadable() -> list[str]:
    """The resources that a reader of `slotted` may not list."""
    return []


@pytest.fixture
def slotted(unreadable: list[str]) -> Iterator[OperatorWorld]:
    """A world with a cluster in Advanced StatefulSets, without basic-tikv-1."""
    crds = [*definitions(), *load_crds(ADVANCED_STATEFUL_SET)]
    world = OperatorWorld(clock=FakeClock(), crds=crds, faults=_forbidding(unreadable))
    world.restart(replace(SETTINGS, advanced_stateful_sets=True))
    tree = basic()
    tree["metadata"]["annotations"] = _SLOT
    world.apply(tree)
    world.run_until_ready(within=300.0)
    world.run(5.0)
    yield world
    world.stop()


@pytest.fixture
def running() -> Iterator[Callable[..., OperatorWorld]]:
    """Creates a world with a cluster at rest."""
    worlds: list[OperatorWorld] = []

    def create(tree: Json, unreadable: Sequence[str] = (), slow: Mapping[str, float] | None = None) -> OperatorWorld:
        worlds.append(world := OperatorWorld(clock=FakeClock(), faults=_forbidding(unreadable)))
        world.world.kubelet.faults.slow.update(slow or {})
        world.apply(tree)
        world.run_until_ready(tree["metadata"]["name"], within=300.0)
        world.run(5.0)
        return world

    yield create
    for each in worlds:
        each.stop()


def basic(**spec: Any) -> Json:
    """The sample with three PDs and TiKVs and two TiDBs, and a merged spec."""
    tree = sample("basic")
    for name, replicas in {"pd": 3, "tikv": 3, "tidb": 2}.items():
        tree["spec"][name]["replicas"] = replicas
    for name, part in spec.items():
        tree["spec"][name] = tree["spec"].get(name, {}) | part if isinstance(part, dict) else part
    return tree


def twin(
    world: OperatorWorld,
    kind: str = "TidbCluster",
    name: str = "basic",
    namespace: str = "default",
    *,
    changing: bool = False,
) -> Twin:
    """The twin of a cluster, with the cluster's own Secrets."""
    cluster = world.admin.get(RESOURCES[kind], name, namespace).decode()
    recording = record(world.world.client(READER), cluster)
    return twin_of(recording, list(_secrets(world)), world.clock.wall(), Timings.real(), PACE, changing=changing)


def _secrets(world: OperatorWorld) -> Iterator[Json]:
    for each in world.admin.list_page(SECRETS).items:
        tree = each.decode()
        meta = {"name": each.metadata.name, "namespace": each.metadata.namespace}
        yield {"metadata": meta, "type": tree["type"], "data": tree.get("data") or {}}


_CLAIM = {"resources": {"requests": {"storage": "1Gi"}}}
_FLASH = {"replicas": 2, "baseImage": "pingcap/tiflash", "storageClaims": [_CLAIM]}

SPECS = {
    "sample": sample("basic"),
    "several": basic(),
    "directories": basic(pd={"dataSubDir": "data"}, tikv={"dataSubDir": "data", "storeLabels": ["disk"]}),
    "locations": basic(pd={"config": '[replication]\nlocation-labels = ["zone", "host"]\n'}),
    "tiflash": basic(tiflash=_FLASH),
    "proxies": basic(tiproxy={"replicas": 2}, ticdc={"replicas": 1}),
    "microservices": basic(pd={"mode": "ms"}, pdms=[{"name": "tso", "replicas": 2}]),
    "removed": basic(tikv={"replicas": 4}),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name == "sample" else pytest.param(name, marks=[pytest.mark.slow, pytest.mark.thorough])
        for name in SPECS
    ],
)
def test_the_operator_wants_to_write_nothing_in_the_twin(running: Callable[..., OperatorWorld], name: str) -> None:
    world = running(SPECS[name])
    if name == "removed":
        world.change(tikv={"replicas": 3})
        world.run(30.0)
        world.run_until_ready(within=300.0)
    found = twin(world)
    found.stage.world.stop()
    assert [] == found.wanted


@pytest.mark.slow
def test_members_stores_pods_and_volumes_are_the_same(running: Callable[..., OperatorWorld]) -> None:
    world = running(basic())
    found = twin(world)
    there, here = (each.data_plane.pd_cluster("default", "basic") for each in (world.world, found.stage.world))
    assert there is not None
    assert here is not None
    assert there.leader is not None
    assert here.leader is not None
    assert (there.id, there.members.keys(), there.leader.name) == (here.id, here.members.keys(), here.leader.name)
    facts = [[(each.id, each.address, each.leaders, each.labels) for each in pd.stores.all()] for pd in (there, here)]
    assert facts[0] == facts[1]
    assert _facts(world.every(PODS)) == _facts(found.stage.world.mirror.list(PODS))
    assert [] == [*found.wanted, *found.missing]
    found.stage.world.stop()


def _facts(pods: Sequence[Json]) -> dict[str, tuple[object, ...]]:
    """What the twin keeps of pods, by name; the pod of Discovery is another one."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            pod["spec"]["nodeName"],
            pod["status"]["podIP"],
            [each["restartCount"] for each in pod["status"]["containerStatuses"]],
        )
        for pod in pods
        if "discovery" not in pod["metadata"]["name"]
    }


@pytest.mark.slow
def test_what_a_user_may_not_read_is_named_and_assumed(running: Callable[..., OperatorWorld]) -> None:
    optional = [str(each) for each in READ[READ.index(STATEFUL_SETS) + 5 :]]
    found = twin(running(sample("basic"), optional))
    found.stage.world.stop()
    assert [f"{each} (may not list)" for each in optional] == found.missing
    assert [] == found.wanted


@pytest.mark.slow
def test_a_cluster_that_changes_has_no_twin(running: Callable[..., OperatorWorld]) -> None:
    world = running(sample("basic"))
    world.change(version="v8.5.3")
    world.run(1.0)
    with pytest.raises(CannotRehearse, match="TidbCluster default/basic is changing; wait until it is done"):
        twin(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "moment"),
    [
        ({"version": "v8.5.3"}, lambda pods, _: pods.get("basic-tikv-2") is None),
        ({"tikv": {"replicas": 3}}, lambda _, stores: "Offline" in stores),
    ],
    ids=["roll", "in"],
)
def test_the_twin_of_a_cluster_that_changes_finishes_the_change(
    running: Callable[..., OperatorWorld], spec: Json, moment: Callable[[Mapping[str, Any], Sequence[str]], bool]
) -> None:
    def uids() -> dict[str, str | None]:
        """The UIDs of the database's pods that stay; None while one is not Ready."""
        metas = ((pod, pod["metadata"]) for pod in world.every(PODS) if "discovery" not in pod["metadata"]["name"])
        pods = [pod for pod, meta in metas if "deletionTimestamp" not in meta]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] if _is_ready(pod) else None for pod in pods}

    def stores() -> list[str]:
        return [store["state"] for store in world.cluster()["status"]["tikv"]["stores"].values()]

    world = running(basic(tikv={"replicas": 4}))
    world.change(**spec)
    world.run_until(lambda: moment(uids(), stores()))
    before = uids()
    with (found := twin(world, changing=True)).stage:
        (left,) = finish(found).forecasts.values()
    world.run_until(lambda: world.condition("Progressing")["status"] == "False", within=300.0)
    world.run(5.0)
    after = uids()
    assert "done" == left.end
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {step.pod for step in left.steps}


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


@pytest.mark.slow
def test_a_cluster_in_advanced_stateful_sets_keeps_its_slots(slotted: OperatorWorld) -> None:
    """TiKV is basic-tikv-0, -2 and -3; its replicas grow around the slot, and no pod restarts."""
    found = twin(slotted)
    assert [] == [*found.wanted, *found.missing]
    sets = [found.stage.world.mirror.list(resource) for resource in (ADVANCED_STATEFUL_SETS, STATEFUL_SETS)]
    assert [3, 0] == [len(trees) for trees in sets]
    change = basic(tikv={"replicas": 4})
    change["metadata"]["annotations"] = _SLOT
    (forecast,) = rehearse_on(found, [change]).forecasts.values()
    assert "done" == forecast.end
    assert {"basic-tikv-4"} == {step.pod for step in forecast.steps}
    found.stage.world.stop()


@pytest.mark.slow
def test_advanced_stateful_sets_that_a_user_may_not_read_are_named(
    slotted: OperatorWorld, unreadable: list[str]
) -> None:
    unreadable.append(str(ADVANCED_STATEFUL_SETS))
    why = r"is in Advanced StatefulSets, which could not be read: may not list"
    with pytest.raises(CannotRehearse, match=why):
        twin(slotted)


@pytest.mark.slow
def test_a_full_node_has_no_room_for_another_pod(running: Callable[..., OperatorWorld]) -> None:
    """Other pods of the nodes leave little of them."""
    world = running(basic(tikv={"requests": {"cpu": "2", "storage": "1Gi"}}))
    hog = {"name": "hog", "image": "hog", "resources": {"requests": {"cpu": "61"}}}
    for node in world.admin.list_page(NODES).items:
        pod: Json = {"metadata": {"name": f"hog-of-{node.metadata.name}"}, "spec": {"containers": [hog]}}
        pod["spec"]["nodeName"] = node.metadata.name
        world.admin.create(PODS, pod, "default")
    world.run(5.0)
    found = rehearse_on(twin(world), [basic(tikv={"replicas": 4, "requests": {"cpu": "2", "storage": "1Gi"}})])
    (forecast,) = found.forecasts.values()
    assert "stuck" == forecast.end
    assert "basic-tikv-3" in forecast.message


@pytest.mark.slow
def test_starts_take_as_long_as_the_pods_took(running: Callable[..., OperatorWorld]) -> None:
    world = running(sample("basic"), slow={"default/basic-tidb-*": 50.0})
    found = twin(world)
    assert 50.0 <= found.starts["tidb"] < 60.0
    tree = sample("basic")
    tree["spec"]["tidb"]["replicas"] = 2
    (forecast,) = rehearse_on(found, [tree]).forecasts.values()
    (step,) = forecast.steps
    assert step.ends is not None
    assert found.starts["tidb"] <= step.ends - step.begins < found.starts["tidb"] + 20.0


def _recorded(world: OperatorWorld) -> Recording:
    return record(world.world.client(READER), world.cluster())


def _seconds(world: OperatorWorld, recording: Recording, spec: Json) -> float:
    """The time of a change on the twin of a recording."""
    found = twin_of(recording, list(_secrets(world)), world.clock.wall(), Timings.real(), PACE)
    with found.stage:
        (forecast,) = rehearse_on(found, [basic(**spec)]).forecasts.values()
    return forecast.seconds


@pytest.mark.slow
def test_a_twin_pulls_no_image_that_its_node_has(running: Callable[..., OperatorWorld]) -> None:
    """A Node lists it, or another pod uses it there."""
    world = running(basic())
    new, spec = "pingcap/tidb:v8.5.3", {"tidb": {"version": "v8.5.3"}}
    pulls = _seconds(world, _recorded(world), spec)
    listed = _recorded(world)
    for node in listed.all(NODES):
        node["status"]["images"] = [{"names": [f"docker.io/{new}"], "sizeBytes": 1}]
    used = _recorded(world)
    user: Json = {"metadata": {"namespace": "other", "uid": "user"}, "status": {"phase": "Running"}}
    containers = [{"name": "user", "image": new}]
    nodes = [node["metadata"]["name"] for node in used.all(NODES)]
    users = [user | {"spec": {"containers": containers, "nodeName": node}} for node in nodes]
    assert [pulls - 2 * 5.0] * 2 == [_seconds(world, each, spec) for each in (listed, replace(used, neighbours=users))]


@pytest.mark.slow
def test_images_that_a_node_may_have_without_listing_them_are_named(running: Callable[..., OperatorWorld]) -> None:
    world = running(sample("basic"))
    recording = _recorded(world)
    node = recording.all(NODES)[0]
    node["status"]["images"] = [{"names": [f"docker.io/app:{number}"], "sizeBytes": 1} for number in range(50)]
    found = twin_of(recording, list(_secrets(world)), world.clock.wall(), Timings.real(), PACE)
    found.stage.world.stop()
    named = "images beyond the 50 that a Node lists, on 1 of the nodes; pods may start sooner there"
    assert [named] == found.missing


CHANGES = {
    "version": basic(version="v8.5.3"),
    "configuration": basic(tikv={"config": "[storage]\nreserve-space = '1GB'\n"}),
    "more": basic(tikv={"replicas": 5}, tidb={"replicas": 3}),
    "less": basic(tidb={"replicas": 1}, pd={"replicas": 1}),
    "refused": basic(tikv={"requests": {"storage": "1Mi"}}),
    "service": basic(tidb={"service": {"type": "NodePort"}}),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name == "version" else pytest.param(name, marks=pytest.mark.thorough) for name in CHANGES]
)
def test_a_plan_on_the_twin_is_what_happens_in_the_cluster(running: Callable[..., OperatorWorld], name: str) -> None:
    world = running(basic())
    (forecast,) = rehearse_on(twin(world), [CHANGES[name]]).forecasts.values()
    world.change(**CHANGES[name]["spec"])
    happened = _pods_in_order(world)
    assert happened == list(dict.fromkeys(each.pod for each in forecast.steps))
    assert (world.is_ready() and world.reason() == "Done") == (forecast.end == "done")
    assert forecast.message in ("", world.condition("Progressing")["message"])


@pytest.mark.slow
@pytest.mark.rule("lifecycle-7.1.1")
def test_a_plan_restarts_pods_in_the_order_of_their_annotations(running: Callable[..., OperatorWorld]) -> None:
    world = running(basic())
    first = {"metadata": {"annotations": {RESTART_PRIORITY: "10"}}}
    world.admin.patch(PODS, "basic-tikv-0", NAMESPACE, first)
    (forecast,) = rehearse_on(twin(world), [CHANGES["configuration"]]).forecasts.values()
    restarted = list(dict.fromkeys(each.pod for each in forecast.steps))
    assert ["basic-tikv-0", "basic-tikv-2", "basic-tikv-1"] == restarted


def _pods_in_order(world: OperatorWorld) -> list[str]:
    """The pods that restart, start or leave within two minutes, in the order in which they begin to."""
    seen = {each["metadata"]["name"]: each["metadata"]["uid"] for each in world.every(PODS)}
    happened: list[str] = []

    def look() -> bool:
        now = {each["metadata"]["name"]: each for each in world.every(PODS)}
        leaving = {name for name, each in now.items() if each["metadata"].get("deletionTimestamp")}
        changed = [name for name, each in now.items() if seen.get(name) != each["metadata"]["uid"]]
        happened.extend(sorted({*changed, *(seen.keys() - now.keys()), *leaving} - set(happened)))
        return False

    end = world.clock.now() + 120.0
    world.run_until(lambda: look() or world.clock.now() >= end, 121.0)
    return happened


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name in OF_EVERY_RUN else pytest.param(name, marks=pytest.mark.thorough) for name in RECORDINGS]
)
def test_the_operator_wants_the_same_in_the_twin_as_in_what_v16_left(name: str, clock: FakeClock) -> None:
    _compare(left_by_v16(name, clock))


@pytest.mark.slow
def test_the_operator_wants_the_same_in_the_twin_of_an_earlier_version(clock: FakeClock) -> None:
    for path in DIRECTORY.glob("*.json"):
        _compare(Left(json.loads(path.read_text())["items"], clock))


def _compare(left: Left) -> None:
    """Compare what an operator wants in each twin with what it wants of the objects that the twin has."""
    twins = {}
    for tc in left.clusters:
        meta = tc.metadata
        if why := WITHOUT_TWIN.get(meta.name):
            with pytest.raises(CannotRehearse, match=why):
                twin(left.world, tc.kind, meta.name, meta.namespace)
        else:
            twins[meta.name] = twin(left.world, tc.kind, meta.name, meta.namespace)
    planned = {each.replace("note ", "patch ", 1) for each in planned_writes(left.world)}
    left.world.stop()
    for found in twins.values():
        objects = {
            f"{resource.plural} {each['metadata']['name']}"
            for resource in (*READ, DM_CLUSTERS)
            for each in found.stage.world.mirror.list(resource)
            if resource in found.stage.world.mirror.resources
        }
        found.stage.world.stop()
        assert {each for each in planned if each.partition(" ")[2] in objects} == set(found.wanted)
