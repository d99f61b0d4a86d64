"""Volumes that can't become what the spec requests are replaced, if the user allows it (lifecycle.md 10.4)."""

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, STORAGE_CLASSES, Resource
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_LONG = 1800.0


@pytest.fixture
def three(world: OperatorWorld) -> OperatorWorld:
    """3/3/2, Ready; volumes may be replaced."""
    cluster = sample("basic")
    cluster["spec"]["enablePVCReplace"] = True
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        cluster["spec"][component]["replicas"] = replicas
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    return world


def claims(world: OperatorWorld, component: str) -> dict[str, Json]:
    """The claims of the pods that the spec wants, by name."""
    replicas = world.cluster()["spec"][component]["replicas"]
    names = {f"{component}-basic-{component}-{ordinal}" for ordinal in range(replicas)}
    found = {claim["metadata"]["name"]: claim for claim in world.every(PERSISTENT_VOLUME_CLAIMS)}
    return {name: found[name] for name in sorted(names)}


def uids(objects: dict[str, Json]) -> set[str]:
    return {each["metadata"]["uid"] for each in objects.values()}


def pods(world: OperatorWorld, component: str) -> dict[str, str]:
    found = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}
    return {name: uid for name, uid in found.items() if f"-{component}-" in name}


def stores_up(world: OperatorWorld) -> int:
    """The number of stores that PD reports as Up."""
    pd = world.world.data_plane.pd_cluster(NAMESPACE, "basic")
    assert pd is not None
    return sum(pd.stores.state_name(store, world.clock.now()) == "Up" for store in pd.stores.all())


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.4")
def test_stores_move_to_smaller_volumes_one_at_a_time(three: OperatorWorld) -> None:
    before, others = uids(claims(three, "tikv")), pods(three, "pd") | pods(three, "tidb")
    counted: list[int] = []

    def done() -> bool:
        counted.append(stores_up(three))
        return three.reason() == "Done"

    three.change(tikv={"requests": {"storage": "512Mi"}})
    three.run_until(lambda: three.reason() == "ReplacingVolume")
    three.run_until(done, _LONG)
    three.run(5)

    after = claims(three, "tikv")
    assert set() == before & uids(after)
    assert {"512Mi"} == {claim["spec"]["resources"]["requests"]["storage"] for claim in after.values()}
    assert (3, 3) == (three.replicas("tikv"), len(pods(three, "tikv")))
    assert min(counted) >= 3
    assert others == pods(three, "pd") | pods(three, "tidb")
    assert "volReplaceInProgress" not in three.cluster()["status"]["tikv"]
    template = three.get(STATEFUL_SETS, "basic-tikv")["spec"]["volumeClaimTemplates"][0]
    assert "512Mi" == template["spec"]["resources"]["requests"]["storage"]


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.4", "F46", "#6252")
def test_pd_members_move_to_another_class(three: OperatorWorld) -> None:
    before, cluster_id = uids(claims(three, "pd")), three.cluster()["status"]["clusterID"]
    three.change(pd={"storageClassName": "fast"})
    three.run_until(lambda: "storage class fast does not exist" in three.progressing)
    three.run(60.0)
    assert before == uids(claims(three, "pd"))

    standard = three.admin.get(STORAGE_CLASSES, "standard", "").decode()
    three.admin.create(STORAGE_CLASSES, standard | {"metadata": {"name": "fast"}})
    three.run_until(lambda: three.reason() == "Done", _LONG)

    after = claims(three, "pd")
    assert set() == before & uids(after)
    assert {"fast"} == {claim["spec"]["storageClassName"] for claim in after.values()}
    assert 3 == three.replicas("pd")
    status = three.cluster()["status"]
    assert (cluster_id, 3) == (status["clusterID"], len(status["pd"]["members"]))


@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True], ids=["at the same time", "meanwhile"])
@pytest.mark.rule("F46", "#5382")
def test_a_new_annotation_does_not_delay_replacement(three: OperatorWorld, begun: bool) -> None:
    before, smaller, annotated = uids(claims(three, "pd")), {"storage": "512Mi"}, {"noted": "too"}
    three.change(pd={"requests": smaller} | ({} if begun else {"annotations": annotated}))
    three.run_until(lambda: three.reason() == "ReplacingVolume" and three.replicas("pd") == 4)
    three.change(pd={"annotations": annotated})
    three.run_until(lambda: three.reason() == "Done", _LONG)
    assert set() == before & uids(claims(three, "pd"))
    members = [three.get(PODS, f"basic-pd-{ordinal}")["metadata"]["annotations"] for ordinal in range(3)]
    assert ["too"] * 3 == [annotations.get("noted") for annotations in members]
    assert (3, True) == (three.replicas("pd"), three.is_ready())


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.4")
def test_the_remaining_volumes_stay_after_the_change_is_reverted(three: OperatorWorld) -> None:
    before = claims(three, "tikv")
    three.change(tikv={"requests": {"storage": "512Mi"}})
    three.run_until(lambda: three.replicas("tikv") == 4)
    three.change(enablePVCReplace=False, tikv={"requests": {"storage": "1Gi"}})
    three.run_until(lambda: three.reason() == "Done" and three.replicas("tikv") == 3, _LONG)
    assert before.keys() == claims(three, "tikv").keys()
    assert uids(before) == uids(claims(three, "tikv"))


@pytest.mark.rule("lifecycle-10.4")
def test_does_not_begin_with_only_two_stores(world: OperatorWorld) -> None:
    cluster = sample("basic")
    cluster["spec"]["enablePVCReplace"] = True
    world.apply(cluster)
    world.run_until_ready()
    before = pods(world, "tikv")
    world.change(tikv={"requests": {"storage": "512Mi"}})
    world.run_until(lambda: world.reason() == "TooFewStores")
    world.run(60)
    assert before == pods(world, "tikv")
    assert world.condition("Progressing")["message"].endswith("set 3 or more")


@pytest.mark.rule("lifecycle-10.4")
def test_replaces_no_volume_before_its_storage_class_exists(three: OperatorWorld) -> None:
    before = uids(claims(three, "tikv"))
    three.change(tikv={"storageClassName": "absent"})
    three.run_until(lambda: three.reason() == "VolumeCantChange")
    three.run(60.0)
    assert (before, 3) == (uids(claims(three, "tikv")), three.replicas("tikv"))
    assert "spec.tikv: storage class absent does not exist" in three.progressing

    standard = three.admin.get(STORAGE_CLASSES, "standard", "").decode()
    three.admin.create(STORAGE_CLASSES, standard | {"metadata": {"name": "absent"}})
    three.run_until(lambda: three.replicas("tikv") == 4, 60.0)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.4")
def test_replaces_no_volume_while_admission_makes_new_ones_like_the_old(three: OperatorWorld) -> None:
    """The spare pod shows it; else data would be moved for nothing, without end."""

    def policy(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == PERSISTENT_VOLUME_CLAIMS and old is None:
            tree["spec"]["storageClassName"] = "standard"

    standard = three.admin.get(STORAGE_CLASSES, "standard", "").decode()
    three.admin.create(STORAGE_CLASSES, standard | {"metadata": {"name": "fast"}})
    three.world.server.webhooks.append(policy)
    before = uids(claims(three, "tikv"))
    three.change(tikv={"storageClassName": "fast"})
    # recreating its claim before it has a volume does not help either
    three.run_until(lambda: "new volumes are no better" in three.progressing, 120.0)
    three.run(300.0)
    assert (before, 3) == (uids(claims(three, "tikv")), three.replicas("tikv"))
    assert "VolumeCantChange" == three.reason()

    three.world.server.webhooks.clear()
    for name in ("standard", "fast"):
        three.change(tikv={"storageClassName": name})
        three.run_until(lambda: "Done" == three.reason(), _LONG)
    assert {"fast"} == {claim["spec"]["storageClassName"] for claim in claims(three, "tikv").values()}


@pytest.mark.slow
@pytest.mark.parametrize("spare", [0, 1], ids=["no spare pod", "after the spare pod"])
@pytest.mark.rule("lifecycle-10.4")
def test_stops_after_the_first_pod_whose_new_volume_equals_the_old_one(three: OperatorWorld, spare: int) -> None:
    """Whatever keeps new volumes from matching the spec, no other pod loses its own because of it."""

    def policy(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == PERSISTENT_VOLUME_CLAIMS and old is None:
            tree["spec"]["resources"]["requests"]["storage"] = "1Gi"

    before = uids(claims(three, "pd"))
    three.change(pd={"requests": {"storage": "512Mi"}, "spareVolReplaceReplicas": spare})
    if spare:
        three.run_until(lambda: three.exists(PERSISTENT_VOLUME_CLAIMS, "pd-basic-pd-3"))
    three.world.server.webhooks.append(policy)
    three.run_until(lambda: "VolumeCantChange" == three.reason(), 120.0)
    for _ in range(2):
        three.run(60.0)
        assert ("VolumeCantChange", 3) == (three.reason(), three.replicas("pd"))
        assert 2 == len(before & uids(claims(three, "pd")))
        # a new process knows as well
        three.restart()
