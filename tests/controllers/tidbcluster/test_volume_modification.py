"""Another storage class for the volumes of a running cluster, with the feature VolumeModifying (VMOD-1..9, VMOD-16)."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kube.objects import Json
from kube.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from member.labels import EVICT_LEADER_BEGIN_TIME
from member.volumes.growth import COOL_DOWN
from rehearsal.operator import SETTINGS
from sandbox.controllers.volume_attributes import ATTRIBUTES, Resizer
from tests.operator_world import NAMESPACE, OperatorWorld, sample

ON = replace(SETTINGS, modifies_volumes=True)
EBS = "ebs.csi.aws.com"


def storage_class(name: str, provisioner: str = EBS, **parameters: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "parameters": parameters,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


def on_ebs(world: OperatorWorld, **spec: Json) -> OperatorWorld:
    """The world with three TiKV on the class `slow`, and the class `fast` beside it."""
    world.admin.create(STORAGE_CLASSES, storage_class("slow", type="gp3", iops="3000"))
    world.admin.create(STORAGE_CLASSES, storage_class("fast", type="gp3", iops="6000"))
    cluster = sample("basic")
    cluster["spec"]["tikv"] |= {"replicas": 3, "storageClassName": "slow"}
    world.apply(cluster)
    world.run_until_ready()
    world.forget()
    return world


@pytest.fixture
def ebs() -> Iterator[OperatorWorld]:
    world = OperatorWorld(settings=ON)
    yield on_ebs(world)
    world.stop()


@pytest.fixture
def without_gate() -> Iterator[OperatorWorld]:
    world = OperatorWorld()
    yield on_ebs(world)
    world.stop()


def pods(world: OperatorWorld) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.every(PODS)}


def claims(world: OperatorWorld) -> dict[str, Json]:
    found = {claim["metadata"]["name"]: claim for claim in world.every(PERSISTENT_VOLUME_CLAIMS)}
    return {name: claim for name, claim in found.items() if "-tikv-" in name}


def attributes(world: OperatorWorld) -> list[Json]:
    """What the driver has set in the volumes of TiKV, in the order of the pods."""
    volumes = {volume["metadata"]["name"]: volume for volume in world.every(PERSISTENT_VOLUMES)}
    named = [claim["spec"]["volumeName"] for _, claim in sorted(claims(world).items())]
    return [json.loads(volumes[name]["metadata"]["annotations"][ATTRIBUTES]) for name in named]


def recorded(world: OperatorWorld, which: str = "status") -> set[str | None]:
    """The class in the annotations of v1.6."""
    key = f"{which}.tidb.pingcap.com/storage-class"
    return {claim["metadata"].get("annotations", {}).get(key) for claim in claims(world).values()}


def requests(world: OperatorWorld) -> list[str | None]:
    return [claim["spec"].get("volumeAttributesClassName") for _, claim in sorted(claims(world).items())]


def refusal(world: OperatorWorld) -> str:
    world.run_until(lambda: world.reason() == "VolumeCantChange")
    return str(world.condition("Progressing")["message"])


def made(world: OperatorWorld) -> list[Json]:
    return world.every(VOLUME_ATTRIBUTES_CLASSES)


SLOW: Json = {"type": "gp3", "iops": "3000"}
FAST: Json = {"type": "gp3", "iops": "6000"}


@pytest.mark.slow
@pytest.mark.rule("VMOD-5", "VMOD-7", "VMOD-8", "VMOD-16")
def test_volumes_get_another_class_pod_by_pod_without_a_restart(ebs: OperatorWorld) -> None:
    before, seen, shown = pods(ebs), [], set()
    half_way = {("slow", left, "fast") for left in (1, 2, 3)}
    ebs.change(tikv={"storageClassName": "fast"})

    def look() -> bool:
        (volume,) = ebs.cluster()["status"]["tikv"]["volumes"].values()
        shown.add((volume["currentStorageClass"], volume["currentCount"], volume["modifiedStorageClass"]))
        seen.append((tuple(each == FAST for each in attributes(ebs)), sum(each is not None for each in requests(ebs))))
        return ebs.is_ready() and ebs.reason() == "Done" and recorded(ebs) == {"fast"}

    ebs.run_until(look, 120.0)
    assert [FAST] * 3 == attributes(ebs)
    assert before == pods(ebs)
    assert {(changed, changed.count(True)) for changed, _ in seen} == {
        ((False, False, False), 0),
        ((True, False, False), 1),
        ((True, True, False), 2),
        ((True, True, True), 3),
    }
    # a claim requests its class only once all lower pods have it
    assert {asked - changed.count(True) for changed, asked in seen} == {0, 1}
    # the status is written at intervals, and shows a class once volumes have it
    assert {("slow", 3, "fast"), ("fast", 3, "fast")} <= shown <= {("fast", 3, "fast"), *half_way}
    (attributes_class,) = made(ebs)
    assert (EBS, FAST) == (attributes_class["driverName"], attributes_class["parameters"])
    assert attributes_class["metadata"]["name"].startswith("tidb-operator-fast-")
    assert {"slow"} == {claim["spec"]["storageClassName"] for claim in claims(ebs).values()}
    ebs.run(60.0)
    ebs.forget()
    ebs.run(100.0)
    assert [] == ebs.writes()


@pytest.mark.slow
@pytest.mark.rule("VMOD-7")
def test_size_and_class_change_in_one_request(ebs: OperatorWorld) -> None:
    ebs.change(tikv={"storageClassName": "fast", "requests": {"storage": "2Gi"}})
    ebs.run_until(lambda: recorded(ebs) == {"fast"} and ebs.reason() == "Done", 120.0)
    assert [FAST] * 3 == attributes(ebs)
    assert {"2Gi"} == {claim["status"]["capacity"]["storage"] for claim in claims(ebs).values()}
    assert {"1"} == {
        claim["metadata"]["annotations"]["spec.tidb.pingcap.com/revision"] for claim in claims(ebs).values()
    }


@pytest.mark.slow
@pytest.mark.rule("VMOD-6")
def test_the_next_change_waits_for_six_hours_and_names_the_moment(ebs: OperatorWorld) -> None:
    ebs.admin.create(STORAGE_CLASSES, storage_class("faster", type="gp3", iops="9000"))
    ebs.change(tikv={"storageClassName": "fast"})
    ebs.run_until(lambda: recorded(ebs) == {"fast"} and ebs.reason() == "Done", 120.0)
    ebs.change(tikv={"storageClassName": "faster"})
    ebs.run_until(lambda: "it can be changed again at 20" in ebs.progressing, 60.0)
    assert "ModifyingVolumes" == ebs.reason()
    assert ebs.is_ready()
    assert {"fast"} == recorded(ebs)
    # a volume that runs full grows meanwhile
    ebs.change(tikv={"requests": {"storage": "2Gi"}})
    ebs.run_until(lambda: {each["status"]["capacity"]["storage"] for each in claims(ebs).values()} == {"2Gi"}, 120.0)
    assert [FAST] * 3 == attributes(ebs)
    ebs.run_until(lambda: recorded(ebs) == {"faster"}, COOL_DOWN + 600.0)
    assert [{"type": "gp3", "iops": "9000"}] * 3 == attributes(ebs)


@pytest.mark.slow
@pytest.mark.rule("I31", "VMOD-7")
def test_a_new_process_after_every_write_completes_the_change(ebs: OperatorWorld) -> None:
    before = pods(ebs)
    ebs.change(tikv={"storageClassName": "fast"})
    ebs.forget()
    for _ in range(25):
        ebs.run_until(lambda: bool(ebs.writes()) or (recorded(ebs) == {"fast"} and ebs.is_ready()), 60.0)
        ebs.restart()
        ebs.forget()
    ebs.run_until(lambda: recorded(ebs) == {"fast"} and ebs.reason() == "Done", 120.0)
    assert ([FAST] * 3, before, 1) == (attributes(ebs), pods(ebs), len(made(ebs)))


@pytest.mark.rule("VMOD-1")
def test_without_the_feature_the_class_stays_and_the_refusal_names_the_feature(without_gate: OperatorWorld) -> None:
    without_gate.change(tikv={"storageClassName": "fast"})
    told = refusal(without_gate)
    assert "spec.tikv.storageClassName: PersistentVolumeClaim tikv-basic-tikv-0, like 2 others," in told
    assert "restore slow, or switch on the feature VolumeModifying" in told
    without_gate.run(40.0)
    assert ({None}, [None] * 3) == (recorded(without_gate), requests(without_gate))


@pytest.mark.rule("VMOD-3", "VMOD-4")
def test_refuses_a_class_that_a_volume_cannot_get_in_place(ebs: OperatorWorld) -> None:
    ebs.change(tikv={"storageClassName": "other"})
    assert "storage class other does not exist; create it, or restore slow" in refusal(ebs)
    ebs.admin.create(STORAGE_CLASSES, storage_class("other", type="gp3", iops="3000", encrypted="true"))
    why = "cannot be changed to other while it holds data: ebs.csi.aws.com cannot change encrypted in place"
    ebs.run_until(lambda: why in ebs.progressing)
    ebs.run(40.0)
    assert ({None}, [], [None] * 3) == (recorded(ebs), made(ebs), requests(ebs))


@pytest.mark.rule("VMOD-4")
def test_refuses_a_smaller_volume_together_with_a_class(ebs: OperatorWorld) -> None:
    ebs.change(tikv={"storageClassName": "fast", "requests": {"storage": "512Mi"}})
    assert "cannot shrink to 512Mi" in refusal(ebs)
    assert [None] * 3 == requests(ebs)


@pytest.mark.slow
def test_an_error_of_the_driver_is_shown_and_the_way_back_needs_no_pause(ebs: OperatorWorld) -> None:
    """Only the first volume is tried: the others keep what they have."""
    ebs.change(tikv={"storageClassName": "fast"})
    ebs.run_until(lambda: requests(ebs)[0] is not None)
    claim = claims(ebs)["tikv-basic-tikv-0"]
    said = {
        "modifyVolumeStatus": {"status": "Infeasible", "targetVolumeAttributesClassName": requests(ebs)[0]},
        "conditions": [{"type": "ModifyVolumeError", "status": "True", "message": "iops are out of range"}],
    }
    ebs.admin.patch(
        PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], NAMESPACE, {"status": said}, subresource="status"
    )
    told = refusal(ebs)
    assert "the storage driver refuses fast (iops are out of range); restore slow, or name another one" in told
    assert [None, None] == requests(ebs)[1:]
    ebs.change(tikv={"storageClassName": "slow"})
    ebs.run_until(lambda: ebs.reason() == "Done" and ebs.is_ready(), 120.0)
    assert [None] * 3 == requests(ebs)
    assert recorded(ebs) == {"slow", None}


@pytest.mark.slow
@pytest.mark.rule("VMOD-5")
def test_a_change_that_a_driver_has_begun_ends_before_the_next_one(ebs: OperatorWorld) -> None:
    ebs.change(tikv={"storageClassName": "fast"})
    in_progress = "InProgress"
    ebs.run_until(
        lambda: (
            (claims(ebs)["tikv-basic-tikv-0"]["status"].get("modifyVolumeStatus") or {}).get("status") == in_progress
        )
    )
    ebs.change(tikv={"storageClassName": "slow"})
    ebs.run_until(lambda: "to get storage class fast first" in ebs.progressing)
    ebs.run_until(lambda: "it can be changed again at 20" in ebs.progressing, 60.0)
    assert [FAST, SLOW, SLOW] == attributes(ebs)
    ebs.run_until(lambda: ebs.reason() == "Done" and ebs.is_ready(), COOL_DOWN + 600.0)
    assert [SLOW] * 3 == attributes(ebs)


def test_names_an_attributes_class_of_a_stranger(ebs: OperatorWorld) -> None:
    ebs.change(tikv={"storageClassName": "fast"})
    ebs.run_until(lambda: bool(made(ebs)))
    (ours,) = made(ebs)
    ebs.restart()
    strange = ours | {"metadata": {"name": ours["metadata"]["name"]}}
    ebs.admin.delete(VOLUME_ATTRIBUTES_CLASSES, ours["metadata"]["name"])
    ebs.admin.create(VOLUME_ATTRIBUTES_CLASSES, strange)
    assert f"VolumeAttributesClass {ours['metadata']['name']} exists and is not the operator's" in refusal(ebs)


@pytest.mark.slow
@pytest.mark.rule("VMOD-9")
def test_in_an_upgrade_each_tikv_gets_its_class_between_eviction_and_restart(ebs: OperatorWorld) -> None:
    """The highest pod comes first, and no two pods change at once."""
    before, seen = pods(ebs), []
    names = sorted(name for name in before if "-tikv-" in name)
    ebs.change(version="v8.5.3", tikv={"storageClassName": "fast"})

    def look() -> bool:
        now = ebs.every(PODS)
        restarted = tuple(pods(ebs).get(name) != before[name] for name in names)
        evicted = {
            pod["metadata"]["name"] for pod in now if EVICT_LEADER_BEGIN_TIME in pod["metadata"].get("annotations", {})
        }
        asked = tuple(request is not None for request in requests(ebs))
        begun = {name for name, is_asked in zip(names, asked, strict=True) if is_asked}
        changed = tuple(each == FAST for each in attributes(ebs))
        unfinished = {name for name, is_changed in zip(names, changed, strict=True) if not is_changed} & begun
        assert len(unfinished) <= 1
        assert unfinished <= evicted
        seen.append((changed, restarted))
        return recorded(ebs) == {"fast"} and ebs.reason() == "Done" and all(restarted)

    ebs.run_until(look, 900.0)
    # a pod restarts only with its new class
    assert [] == [each for each in seen if any(restart and not done for done, restart in zip(*each, strict=True))]
    assert ((False, False, True), (False, False, False)) in seen


@pytest.mark.slow
@pytest.mark.rule("VMOD-6", "VMOD-9")
def test_an_upgrade_does_not_wait_for_the_pause_of_six_hours(ebs: OperatorWorld) -> None:
    ebs.change(tikv={"storageClassName": "fast"})
    ebs.run_until(lambda: recorded(ebs) == {"fast"} and ebs.reason() == "Done", 120.0)
    ebs.change(version="v8.5.3", tikv={"storageClassName": "slow"})
    before = pods(ebs)
    ebs.run_until(lambda: pods(ebs).get("basic-tikv-2") not in (None, before["basic-tikv-2"]), 400.0)
    assert [FAST] * 3 == attributes(ebs)


@pytest.mark.slow
@pytest.mark.rule("VMOD-9")
def test_an_upgrade_waits_ten_minutes_at_most_for_a_storage_driver(
    ebs: OperatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pods(ebs)
    monkeypatch.setattr(Resizer, "_ask_driver", lambda *_: None)
    ebs.change(version="v8.5.3", tikv={"storageClassName": "fast"})
    ebs.run_until(lambda: "the volumes of pod basic-tikv-2 have storage class fast" in ebs.progressing, 300.0)
    began = ebs.clock.now()
    ebs.run_until(lambda: pods(ebs).get("basic-tikv-2") != before["basic-tikv-2"], 900.0)
    assert 590.0 < ebs.clock.now() - began < 700.0
    # only the volumes of one pod change at a time: the next one does not wait
    ebs.run_until(lambda: pods(ebs).get("basic-tikv-1") not in (None, before["basic-tikv-1"]), 300.0)
    assert [None, None] == requests(ebs)[:2]
