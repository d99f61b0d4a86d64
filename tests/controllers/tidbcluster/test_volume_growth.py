"""Larger volumes for a running cluster, with no pod restarted (lifecycle.md 10.2, R05, R26, F47)."""

import pytest

from kube.objects import Json
from kube.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, STORAGE_CLASSES, TIDB_CLUSTERS
from sandbox.apiserver.faults import Fault as ApiFault
from sandbox.apiserver.refusals import Refusal
from tests.operator_world import NAMESPACE, OPERATOR, OperatorWorld, sample

REMEMBERED = "tidb.pingcap.com/configmap-name-before-delete-tikv"


@pytest.fixture
def three(basic: OperatorWorld) -> OperatorWorld:
    """The cluster with three TiKV, Ready."""
    basic.change(tikv={"replicas": 3})
    basic.run_until_ready()
    basic.forget()
    return basic


def grow(world: OperatorWorld, size: str = "2Gi") -> None:
    world.change(tikv={"requests": {"storage": size}})


def pods(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def claims(world: OperatorWorld, component: str = "tikv") -> dict[str, Json]:
    found = {claim["metadata"]["name"]: claim for claim in world.every(PERSISTENT_VOLUME_CLAIMS)}
    return {name: claim for name, claim in found.items() if f"-{component}-" in name}


def sizes(world: OperatorWorld, component: str = "tikv") -> set[tuple[str, str]]:
    """Requests and capacities."""
    return {
        (claim["spec"]["resources"]["requests"]["storage"], claim["status"]["capacity"]["storage"])
        for claim in claims(world, component).values()
    }


def template_size(world: OperatorWorld) -> str:
    template = world.get(STATEFUL_SETS, "basic-tikv")["spec"]["volumeClaimTemplates"][0]
    return str(template["spec"]["resources"]["requests"]["storage"])


def revisions(world: OperatorWorld) -> set[str]:
    status = world.get(STATEFUL_SETS, "basic-tikv")["status"]
    labels = [p["metadata"]["labels"] for p in world.every(PODS) if "-tikv-" in p["metadata"]["name"]]
    return {status["updateRevision"], *(each["controller-revision-hash"] for each in labels)}


def assert_grown(world: OperatorWorld, before: dict[str, str], size: str = "2Gi") -> None:
    assert before == pods(world)
    assert {(size, size)} == sizes(world)
    assert size == template_size(world)
    assert 1 == len(revisions(world))
    assert 3 == world.replicas("tikv")
    assert REMEMBERED not in world.cluster()["metadata"].get("annotations", {})


def refusal(world: OperatorWorld) -> str:
    world.run_until(lambda: world.condition("Progressing")["status"] == "False" and world.reason() != "Done")
    return str(world.condition("Progressing")["message"])


@pytest.mark.slow
@pytest.mark.rule("R05")
def test_grows_volumes_and_stateful_set_without_restarting_a_pod(three: OperatorWorld) -> None:
    before, old = pods(three), three.get(STATEFUL_SETS, "basic-tikv")
    grow(three)
    three.run_until(lambda: template_size_or_none(three) == "2Gi")
    three.run_until_ready()

    assert_grown(three, before)
    new = three.get(STATEFUL_SETS, "basic-tikv")
    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    assert old["spec"]["template"] == new["spec"]["template"]
    assert ["basic-tikv"] == [event["message"].split()[2] for event in three.events("SuccessfulDelete")]
    noted = next(iter(claims(three).values()))["metadata"]["annotations"]
    for key in ("revision", "storage-size", "storage-class"):
        assert noted[f"spec.tidb.pingcap.com/{key}"] == noted[f"status.tidb.pingcap.com/{key}"]

    # a resync sees where leaders have come to rest
    three.run(35.0)
    three.forget()
    three.run(100.0)
    assert [] == three.writes()
    assert [] == three.reads()


@pytest.mark.rule("F4")
def test_does_not_grow_a_volume_for_a_wish_that_was_withdrawn(basic: OperatorWorld) -> None:
    """With a stale cache; the volume could never shrink again."""
    cache = basic.operator.caches[TIDB_CLUSTERS]
    grow(basic)
    basic.operator.look()
    cache.blind = True
    grow(basic, "1Gi")
    basic.run(30.0)
    cache.blind = False
    cache.look()
    basic.run_until_ready()
    assert {("1Gi", "1Gi")} == sizes(basic)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.1")
def test_the_volumes_of_all_components_grow_at_once(world: OperatorWorld) -> None:
    volume = {"name": "log", "storageSize": "1Gi", "mountPath": "/log"}
    cluster = sample("basic")
    cluster["spec"]["tidb"]["storageVolumes"] = [volume]
    world.apply(cluster)
    world.run_until_ready()
    before = pods(world)
    larger = {"requests": {"storage": "2Gi"}}
    world.change(pd=larger, tikv=larger, tidb={"storageVolumes": [volume | {"storageSize": "2Gi"}]})
    world.run(10.0)
    world.run_until_ready()
    assert before == pods(world)
    for component in ("pd", "tikv", "tidb"):
        assert {("2Gi", "2Gi")} == sizes(world, component)
    assert 3 == len(world.messages("SuccessfulDelete"))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["RollingUpdate", "InPlace"])
@pytest.mark.rule("I31", "R05")
def test_a_new_process_after_every_write_grows_the_volumes(three: OperatorWorld, strategy: str) -> None:
    three.change(configUpdateStrategy=strategy)
    three.run_until_ready()
    before = pods(three)
    grow(three)
    three.forget()
    for _ in range(20):
        three.run_until(lambda: bool(three.writes()) or (template_size_or_none(three) == "2Gi" and three.is_ready()))
        three.restart()
        three.forget()
    three.run_until_ready()
    assert_grown(three, before)


def template_size_or_none(world: OperatorWorld) -> str:
    return template_size(world) if world.exists(STATEFUL_SETS, "basic-tikv") else ""


@pytest.mark.slow
@pytest.mark.rule("lifecycle-8.5")
def test_a_simultaneous_scale_in_loses_no_store(three: OperatorWorld) -> None:
    """A StatefulSet that came back smaller would take a store away without PD knowing (I3)."""
    before = pods(three)
    three.admin.delete(STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    three.change(tikv={"replicas": 1, "requests": {"storage": "2Gi"}})
    three.run_until(lambda: three.exists(STATEFUL_SETS, "basic-tikv"))
    three.run(0.5)
    assert before.items() <= pods(three).items()


@pytest.mark.slow
def test_a_recreated_stateful_set_adopts_its_pods_unchanged(three: OperatorWorld) -> None:
    before = pods(three)
    three.admin.delete(STATEFUL_SETS, "basic-tikv", NAMESPACE, propagation="Orphan")
    three.run_until(lambda: three.exists(STATEFUL_SETS, "basic-tikv"))
    three.run_until_ready()
    three.run(10.0)
    assert before == pods(three)
    assert 1 == len(revisions(three))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-12")
def test_a_resume_with_new_replicas_starts_all_pods_with_data_and_then_scales(three: OperatorWorld) -> None:
    three.change(suspendAction={"suspendStatefulSet": True})
    three.run_until(lambda: three.reason() == "Suspended")
    three.change(suspendAction=None, tikv={"replicas": 4})
    three.run_until_ready()
    # it was created with three
    assert [4] == three.asked_replicas("tikv")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {"requests": {"storage": "512Mi"}},
            "spec.tikv.requests.storage: PersistentVolumeClaim tikv-basic-tikv-0",
        ),
        ({"storageClassName": "other"}, "spec.tikv.storageClassName: PersistentVolumeClaim"),
        ({"requests": {"storage": "2Gi"}, "storageClassName": "fixed"}, "standard, which cannot be changed to fixed"),
    ],
)
@pytest.mark.rule("lifecycle-10.2")
def test_refuses_impossible_sizes_by_field_and_claim(basic: OperatorWorld, spec: Json, told: str) -> None:
    before = pods(basic)
    basic.change(tikv=spec)
    assert told in refusal(basic)
    assert "VolumeCantChange" == basic.reason()
    basic.run(40.0)
    assert before == pods(basic)
    assert [] == [w for w in basic.writes() if "tidbclusters" not in w and "events" not in w]


@pytest.mark.rule("lifecycle-10.2")
def test_reports_a_class_that_forbids_growth_and_continues_when_it_allows_it(basic: OperatorWorld) -> None:
    basic.admin.patch(STORAGE_CLASSES, "standard", "", {"allowVolumeExpansion": False})
    grow(basic)
    assert "lacks allowVolumeExpansion" in refusal(basic)
    basic.admin.patch(STORAGE_CLASSES, "standard", "", {"allowVolumeExpansion": True})
    basic.run_until(lambda: basic.exists(STATEFUL_SETS, "basic-tikv") and template_size(basic) == "2Gi", 120.0)


def refuse_to_grow(world: OperatorWorld) -> None:
    """The volumes belong to a driver that does not expand them."""
    standard = world.admin.get(STORAGE_CLASSES, "standard", "").decode()
    world.admin.delete(STORAGE_CLASSES, "standard", "")
    kept = {field: standard[field] for field in ("apiVersion", "kind", "volumeBindingMode", "allowVolumeExpansion")}
    others = kept | {"metadata": {"name": "standard"}, "provisioner": "example.com/disks"}
    world.admin.create(STORAGE_CLASSES, others)


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.2")
def test_names_the_refusals_of_all_components(basic: OperatorWorld) -> None:
    smaller = {"requests": {"storage": "512Mi"}}
    basic.change(pd=smaller, tikv=smaller)
    told = refusal(basic)
    assert ("spec.pd.requests.storage" in told, "spec.tikv.requests.storage" in told) == (True, True)


@pytest.mark.rule("lifecycle-10.2")
def test_an_error_in_one_component_hides_no_refusal_of_another(basic: OperatorWorld) -> None:
    fault = ApiFault(refusal=Refusal(403, "Forbidden", "exceeded quota"))
    heal = basic.world.faults.api_fault(fault, OPERATOR, "patch", "persistentvolumeclaims", f"{NAMESPACE}/pd-*")
    basic.change(pd={"requests": {"storage": "2Gi"}}, tikv={"requests": {"storage": "512Mi"}})
    told = refusal(basic)
    assert "VolumeCantChange" == basic.reason()
    assert "spec.tikv.requests.storage" in told
    assert "exceeded quota" in told.partition("spec.pd: ")[2]
    heal()
    basic.run_until(lambda: {("2Gi", "2Gi")} == sizes(basic, "pd"), 60.0)
    assert "spec.pd" not in basic.condition("Progressing")["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["FileSystemResizePending", "ControllerResizeError", "NodeResizeError", "VolumeResizeFailed"]
)
@pytest.mark.rule("lifecycle-10.2")
def test_reports_the_cause_that_keeps_a_volume_from_growing(basic: OperatorWorld, kind: str) -> None:
    refuse_to_grow(basic)
    grow(basic)
    waiting = "waiting for PersistentVolumeClaim tikv-basic-tikv-0 to grow from 1Gi to 2Gi"
    basic.run_until(lambda: basic.progressing.endswith(waiting))
    claim = basic.get(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-0")["metadata"]
    if kind == "VolumeResizeFailed":
        about = {"kind": "PersistentVolumeClaim", "name": claim["name"], "namespace": NAMESPACE, "uid": claim["uid"]}
        event = {
            "metadata": {"name": "told"},
            "involvedObject": about,
            "type": "Warning",
            "reason": kind,
            "message": "no",
        }
        earlier = event | {"metadata": {"name": "earlier"}, "reason": "ProvisioningFailed"}
        for each in (event, earlier):
            basic.admin.create(EVENTS, {"apiVersion": "v1", "kind": "Event"} | each, NAMESPACE)
    else:
        said = {
            "conditions": [{"type": "Resizing", "status": "True"}, {"type": kind, "status": "True", "message": "no"}]
        }
        basic.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim["name"], NAMESPACE, {"status": said}, subresource="status")
    basic.run_until(lambda: basic.progressing.endswith(f"{waiting} ({kind}: no)"))
    assert "GrowingVolumes" == basic.reason()


def call_infeasible(world: OperatorWorld, claim: str, size: str = "2Gi") -> None:
    """Kubernetes' status of a claim whose volume the storage driver cannot expand so far (KEP-1790)."""
    said = {
        "allocatedResources": {"storage": size},
        "allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"},
    }
    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE, {"status": said}, subresource="status")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.2")
def test_reports_an_infeasible_size_and_the_way_out(three: OperatorWorld) -> None:
    refuse_to_grow(three)
    grow(three)
    three.run_until(lambda: {size for size, _ in sizes(three)} == {"2Gi"})
    call_infeasible(three, "tikv-basic-tikv-1")
    told = (
        "the storage driver can't grow PersistentVolumeClaim tikv-basic-tikv-1 from 1Gi to 2Gi; have room made for it"
    )
    three.run_until(lambda: told in three.progressing, 60.0)
    assert "GrowingVolumes" == three.reason()

    grow(three, "1536Mi")
    three.run_until(lambda: {size for size, _ in sizes(three)} == {"1536Mi"})
    assert "infeasible" not in three.progressing


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.4")
def test_replaces_a_volume_that_cannot_grow_if_the_user_allows_it(three: OperatorWorld) -> None:
    three.change(enablePVCReplace=True)
    refuse_to_grow(three)
    grow(three)
    three.run_until(lambda: {size for size, _ in sizes(three)} == {"2Gi"})
    three.run(30.0)
    assert "ReplacingVolume" != three.reason()
    call_infeasible(three, "tikv-basic-tikv-1")
    three.run_until(lambda: three.cluster()["status"]["tikv"].get("volReplaceInProgress") is True, 60.0)


@pytest.mark.rule("F47")
def test_grows_claims_while_the_component_is_changing(basic: OperatorWorld) -> None:
    basic.change(
        tikv={"statefulSetUpdateStrategy": "OnDelete", "annotations": {"a": "b"}, "requests": {"storage": "2Gi"}}
    )
    basic.run_until(lambda: sizes(basic) == {("2Gi", "2Gi")})
    basic.run(10.0)
    assert "1Gi" == template_size(basic)


@pytest.mark.rule("R26")
def test_refuses_a_mount_without_a_volume_before_any_pod_is_touched(basic: OperatorWorld) -> None:
    before = pods(basic)
    basic.change(tikv={"additionalVolumeMounts": [{"name": "raft", "mountPath": "/raft"}]})
    basic.run_until(lambda: "spec.tikv mounts raft, and there is no such volume" in basic.progressing)
    assert ("FailedUpdateTiKVSTS", before) == (basic.reason(), pods(basic))


@pytest.mark.rule("F48", "#3858")
def test_each_volume_of_a_pod_has_a_size_of_its_own(world: OperatorWorld) -> None:
    volume = {"name": "wal", "storageSize": "3Gi", "mountPath": "/wal"}
    cluster = sample("basic")
    cluster["spec"]["tikv"]["storageVolumes"] = [volume]
    world.apply(cluster)
    world.run_until_ready()
    before = pods(world)
    assert {("1Gi", "1Gi"), ("3Gi", "3Gi")} == sizes(world)
    world.forget()
    world.run(35.0)
    assert [] == [write for write in world.writes() if "persistentvolumeclaims" in write]
    world.change(tikv={"storageVolumes": [volume | {"storageSize": "4Gi"}]})
    world.run_until_ready()
    assert (before, {("1Gi", "1Gi"), ("4Gi", "4Gi")}) == (pods(world), sizes(world))


@pytest.mark.rule("lifecycle-3.2")
def test_does_not_grow_volumes_of_a_paused_cluster(basic: OperatorWorld) -> None:
    basic.change(paused=True)
    grow(basic)
    basic.run(60.0)
    assert {("1Gi", "1Gi")} == sizes(basic)


def classes(world: OperatorWorld, component: str = "tikv") -> set[str | None]:
    return {claim["spec"].get("volumeAttributesClassName") for claim in claims(world, component).values()}


def template_class(world: OperatorWorld, name: str = "basic-tikv") -> str | None:
    if not world.exists(STATEFUL_SETS, name):
        return None
    template: Json = world.get(STATEFUL_SETS, name)["spec"]["volumeClaimTemplates"][0]["spec"]
    return template.get("volumeAttributesClassName")


def driver_says(world: OperatorWorld, claim: str, status: str) -> None:
    """The status that Kubernetes and the storage driver report for a claim that requests the class `fast`; empty: it
    has it."""
    target = {"targetVolumeAttributesClassName": "fast", "status": status} if status else None
    news = {"status": {"modifyVolumeStatus": target}}
    world.admin.patch(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE, news, subresource="status")


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.3")
def test_sets_a_new_attributes_class_on_every_claim_without_a_restart(three: OperatorWorld) -> None:
    before = pods(three)
    three.change(tikv={"volumeAttributesClassName": "fast"})
    three.run_until(lambda: template_class(three) == "fast")
    three.run_until_ready()
    assert ({"fast"}, before) == (classes(three), pods(three))
    assert {None} == classes(three, "pd")
    three.run(100.0)
    three.forget()
    three.run(100.0)
    assert [] == three.writes()


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.3")
def test_a_class_and_a_size_change_together(three: OperatorWorld) -> None:
    before = pods(three)
    three.change(tikv={"volumeAttributesClassName": "fast", "requests": {"storage": "2Gi"}})
    three.run_until(lambda: classes(three) == {"fast"} and sizes(three) == {("2Gi", "2Gi")}, 60.0)
    three.run_until_ready()
    assert_grown(three, before)
    assert "fast" == template_class(three)


@pytest.mark.rule("lifecycle-10.3")
def test_each_volume_and_each_component_has_a_class_of_its_own(world: OperatorWorld) -> None:
    volume = {"name": "log", "storageSize": "1Gi", "mountPath": "/log"}
    cluster = sample("basic")
    cluster["spec"]["tidb"]["storageVolumes"] = [volume]
    cluster["spec"]["pd"]["volumeAttributesClassName"] = "slow"
    world.apply(cluster)
    world.run_until_ready()
    assert ({"slow"}, {None}) == (classes(world, "pd"), classes(world, "tidb"))
    world.change(tidb={"storageVolumes": [volume | {"volumeAttributesClassName": "fast"}]})
    world.run_until(lambda: template_class(world, "basic-tidb") == "fast")
    world.run_until_ready()
    assert ({"slow"}, {"fast"}) == (classes(world, "pd"), classes(world, "tidb"))


@pytest.mark.slow
@pytest.mark.rule("lifecycle-10.3")
def test_reports_the_error_of_the_driver(basic: OperatorWorld) -> None:
    claim = "tikv-basic-tikv-0"
    basic.change(tikv={"volumeAttributesClassName": "fast"})
    basic.run_until(lambda: template_class(basic) == "fast")
    driver_says(basic, claim, "Pending")
    basic.run_until(lambda: "does the class exist" in basic.progressing, 60.0)
    assert "ModifyingVolumes" == basic.reason()
    driver_says(basic, claim, "Infeasible")
    assert f"the storage driver refuses PersistentVolumeClaim {claim} to get" in refusal(basic)
    assert basic.progressing.startswith("basic: VolumeCantChange: spec.tikv.volumeAttributesClassName: ")
    driver_says(basic, claim, "")
    basic.run_until_ready()
