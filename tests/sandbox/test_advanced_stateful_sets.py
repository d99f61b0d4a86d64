"""The controller of Advanced StatefulSets: StatefulSets that leave out ordinals (lifecycle.md 4.4)."""

from collections.abc import Collection, Iterator

import pytest

from apis.ordinals import OrdinalSet
from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
)
from manifests import ADVANCED_STATEFUL_SET
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.world import World, load_crds
from tests.contract.objects import claim_template, pod, stateful_set

NAMESPACE = "default"
NEXT_IMAGE = "registry.example/idle:v2"


@pytest.fixture
def world(clock: FakeClock) -> Iterator[World]:
    made = World(clock, SeededRandomness(1), crds=load_crds(ADVANCED_STATEFUL_SET))
    yield made
    made.stop()


def create(world: World, replicas: int, slots: str | None = None, **spec: object) -> None:
    body = stateful_set("db", replicas, podManagementPolicy="Parallel", **spec)
    body["apiVersion"] = ADVANCED_STATEFUL_SETS.api_version
    body["metadata"]["annotations"] = {} if slots is None else {"delete-slots": slots}
    world.client().create(ADVANCED_STATEFUL_SETS, body, NAMESPACE)
    world.run_until_settled()


def change(world: World, slots: str | None, **spec: object) -> None:
    patch: Json = {"metadata": {"annotations": {"delete-slots": slots}}, "spec": spec}
    world.client().patch(ADVANCED_STATEFUL_SETS, "db", NAMESPACE, patch)
    world.run_until_settled()


def pods(world: World) -> dict[int, Json]:
    found = [each.decode() for each in world.client().list_page(PODS, NAMESPACE).items]
    return {int(each["metadata"]["name"].removeprefix("db-")): each for each in found}


def uids(world: World) -> dict[int, str]:
    return {ordinal: pod["metadata"]["uid"] for ordinal, pod in pods(world).items()}


def images(world: World) -> dict[int, str]:
    return {ordinal: pod["spec"]["containers"][0]["image"].rpartition(":")[2] for ordinal, pod in pods(world).items()}


def test_pods_have_the_ordinals_that_are_no_slots(world: World) -> None:
    create(world, 3, "[1]")
    assert [0, 2, 3] == sorted(pods(world))
    status = world.client().get(ADVANCED_STATEFUL_SETS, "db", NAMESPACE).decode()["status"]
    assert (3, 3) == (status["replicas"], status["readyReplicas"])
    assert "availableReplicas" not in status
    assert "apps.kubernetes.io/pod-index" not in pods(world)[2]["metadata"]["labels"]


@pytest.mark.parametrize("slots", ["1", '["1"]', "[1,"])
def test_slots_that_cannot_be_read_are_none(world: World, slots: str) -> None:
    create(world, 3, slots)
    assert [0, 1, 2] == sorted(pods(world))


@pytest.mark.slow
def test_fifty_changes_leave_the_wanted_pods_and_restart_no_other(world: World) -> None:
    chance = SeededRandomness(7)
    create(world, 3)
    for _ in range(50):
        replicas, slots = chance.integer(0, 4), sorted({chance.integer(0, 6) for _ in range(chance.integer(0, 4))})
        before = uids(world)
        change(world, str(slots), replicas=replicas)
        wanted = OrdinalSet(replicas, frozenset(slots)).ordinals
        assert wanted == sorted(pods(world)), f"{replicas} replicas without {slots}"
        assert {each: before[each] for each in before.keys() & set(wanted)}.items() <= uids(world).items()


def test_a_returning_ordinal_uses_the_claim_that_it_left(world: World) -> None:
    create(world, 3, volumeClaimTemplates=[claim_template("data")])
    claims = _claims(world)
    change(world, "[1]", replicas=2)
    assert [0, 2] == sorted(pods(world))
    change(world, None, replicas=3)
    assert [0, 1, 2] == sorted(pods(world))
    assert claims == _claims(world)


def test_a_roll_proceeds_from_the_highest_ordinal_to_the_partition_without_slots(world: World) -> None:
    create(world, 3, "[1]", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 4}})
    template = pods_template(world)
    template["spec"]["containers"][0]["image"] = NEXT_IMAGE
    change(world, "[1]", template=template)
    assert {0: "v1", 2: "v1", 3: "v1"} == images(world)
    # a partition is an ordinal: 3 of 3 replicas is a pod here
    change(world, "[1]", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 3}})
    assert {0: "v1", 2: "v1", 3: "v2"} == images(world)
    change(world, "[1]", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    assert {0: "v2", 2: "v2", 3: "v2"} == images(world)


def test_the_pods_of_a_native_stateful_set_are_adopted_as_v1_6_converts_it(world: World) -> None:
    client = world.client()
    client.create(STATEFUL_SETS, stateful_set("db", 3, updateStrategy={"type": "OnDelete"}), NAMESPACE)
    world.run_until_settled()
    before, native = uids(world), client.get(STATEFUL_SETS, "db", NAMESPACE).decode()
    revision = client.list_page(CONTROLLER_REVISIONS, NAMESPACE).items[0].decode()["metadata"]

    unlabelled = dict.fromkeys(native["spec"]["selector"]["matchLabels"])
    marked = {"metadata": {"labels": unlabelled | {"apps.pingcap.com/upgrade-to-asts": "db"}}}
    client.patch(CONTROLLER_REVISIONS, revision["name"], NAMESPACE, marked)
    meta = {key: native["metadata"][key] for key in ("name", "labels") if key in native["metadata"]}
    spec = {key: native["spec"][key] for key in ("replicas", "selector", "serviceName", "template", "updateStrategy")}
    advanced = {"apiVersion": ADVANCED_STATEFUL_SETS.api_version, "kind": "StatefulSet", "metadata": meta, "spec": spec}
    client.create(ADVANCED_STATEFUL_SETS, advanced, NAMESPACE)
    client.patch(ADVANCED_STATEFUL_SETS, "db", NAMESPACE, {"status": native["status"]}, subresource="status")
    client.delete(STATEFUL_SETS, "db", NAMESPACE, propagation="Orphan")
    world.run_until_settled()

    assert before == uids(world)
    owners = {pod["metadata"]["ownerReferences"][0]["apiVersion"] for pod in pods(world).values()}
    assert {ADVANCED_STATEFUL_SETS.api_version} == owners
    there, newest = client.list_page(CONTROLLER_REVISIONS, NAMESPACE).items
    assert revision["name"] == there.metadata.name
    status = client.get(ADVANCED_STATEFUL_SETS, "db", NAMESPACE).decode()["status"]
    assert (there.metadata.name, newest.metadata.name) == (status["currentRevision"], status["updateRevision"])
    assert native["spec"]["selector"]["matchLabels"].items() <= there.metadata.labels.items()


def test_a_pod_is_created_while_its_claim_is_being_deleted_and_has_none_afterwards(world: World) -> None:
    create(world, 1, volumeClaimTemplates=[claim_template("data")])
    change(world, "[0]", replicas=0)
    client = world.client()
    client.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", NAMESPACE, {"metadata": {"finalizers": ["example.com/hold"]}})
    client.delete(PERSISTENT_VOLUME_CLAIMS, "data-db-0", NAMESPACE)
    change(world, None, replicas=1)
    assert [0] == sorted(pods(world))
    client.patch(PERSISTENT_VOLUME_CLAIMS, "data-db-0", NAMESPACE, {"metadata": {"finalizers": None}})
    world.run_until_settled()
    assert {} == _claims(world)
    assert "Pending" == pods(world)[0]["status"]["phase"]


def test_no_pod_follows_one_that_cannot_be_created(world: World) -> None:
    client = world.client()
    client.create(PODS, pod("db-1"), NAMESPACE)
    create(world, 3)
    assert [0, 1] == sorted(pods(world))
    client.delete(PODS, "db-1", NAMESPACE)
    world.run_until_settled()
    assert [0, 1, 2] == sorted(pods(world))


def pods_template(world: World) -> Json:
    template: Json = world.client().get(ADVANCED_STATEFUL_SETS, "db", NAMESPACE).decode()["spec"]["template"]
    return template


def _claims(world: World) -> dict[str, str]:
    claims: Collection[Json] = [
        each.decode() for each in world.client().list_page(PERSISTENT_VOLUME_CLAIMS, NAMESPACE).items
    ]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in claims}


def test_no_pod_is_created_while_an_orphaned_revision_is_beside_one_with_a_controller(world: World) -> None:
    create(world, 1)
    client = world.client()
    (own,) = client.list_page(CONTROLLER_REVISIONS, NAMESPACE).items
    body = own.decode()
    (reference,) = body["metadata"]["ownerReferences"]
    meta = {"name": "db-zz", "labels": body["metadata"]["labels"]}
    client.create(CONTROLLER_REVISIONS, body | {"metadata": meta}, NAMESPACE)
    change(world, None, replicas=2)
    assert [0] == sorted(pods(world))
    client.patch(CONTROLLER_REVISIONS, "db-zz", NAMESPACE, {"metadata": {"ownerReferences": [reference]}})
    change(world, None, replicas=3)
    assert [0, 1, 2] == sorted(pods(world))
