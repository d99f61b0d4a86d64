"""Claims that have no volume yet: which the operator recreates, and which it keeps (lifecycle.md F47, 10.2)."""

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Resource
from sandbox.controllers.volumes import standard_storage_class
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_LABELS = {
    "app.kubernetes.io/name": "tidb-cluster",
    "app.kubernetes.io/managed-by": "tidb-operator",
    "app.kubernetes.io/instance": "basic",
    "app.kubernetes.io/component": "tikv",
}
_SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "tikv"}
_RESTORED = "tikv-basic-tikv-0"


def make_class(world: OperatorWorld, name: str, provisioner: str) -> None:
    body = standard_storage_class() | {"metadata": {"name": name}, "provisioner": provisioner}
    world.admin.create(STORAGE_CLASSES, body)


def restore_claim(world: OperatorWorld, labels: Json, size: str, **spec: Json) -> None:
    """As a backup tool does before the cluster exists: a claim of a class whose provisioner takes its time."""
    make_class(world, "slow", "example.com/slow")
    asked = {"storageClassName": "slow", "resources": {"requests": {"storage": size}}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": _RESTORED, "labels": _LABELS | labels},
        "spec": {"accessModes": ["ReadWriteOnce"], **asked, **spec},
    }
    world.admin.create(PERSISTENT_VOLUME_CLAIMS, claim, NAMESPACE)


def claims(world: OperatorWorld, component: str = "tikv") -> dict[str, Json]:
    found = {claim["metadata"]["name"]: claim for claim in world.every(PERSISTENT_VOLUME_CLAIMS)}
    return {name: claim for name, claim in found.items() if f"-{component}-" in name}


def uids(world: OperatorWorld) -> dict[str, str]:
    return {name: claim["metadata"]["uid"] for name, claim in claims(world).items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("differs", "labels", "spec"),
    [
        ("class", {}, {"dataSource": _SNAPSHOT}),
        ("size", {}, {"dataSourceRef": _SNAPSHOT}),
        ("class", {}, {"selector": {"matchLabels": {"velero.io/dynamic-pv-restore": "tikv"}}}),
        ("size", {"tidb.pingcap.com/store-id": "4"}, {}),
    ],
    ids=["dataSource", "dataSourceRef", "selector", "store"],
)
@pytest.mark.rule("F47")
def test_does_not_delete_a_restored_claim_that_waits_for_its_data(
    world: OperatorWorld, differs: str, labels: Json, spec: Json
) -> None:
    size = "1Gi" if differs == "class" else "2Gi"
    restore_claim(world, labels, size, **spec)
    before = uids(world)
    cluster = sample("basic")
    cluster["spec"]["tikv"]["storageClassName"] = "standard" if differs == "class" else "slow"
    world.apply(cluster)
    world.run_until(lambda: world.reason() == "VolumeCantChange")
    world.run(60.0)
    assert ("VolumeCantChange", before) == (world.reason(), uids(world))
    assert f"{_RESTORED} ({size} of storage class slow) stays" in world.progressing

    # the spec requests the claim's class, and its volume is coming
    world.change(tikv={"storageClassName": "slow", "requests": {"storage": "2Gi"}})
    world.admin.delete(STORAGE_CLASSES, "slow", "")
    make_class(world, "slow", "sandbox.local/disks")
    world.run_until_ready(within=120.0)
    assert before == uids(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "imposed", "told"),
    [
        ({"storageClassName": "standard"}, {"storageClassName": "slow"}, "1Gi of storage class slow"),
        ({}, {"storageClassName": "gone"}, "1Gi of storage class gone"),
        (
            {"storageClassName": "slow"},
            {"resources": {"requests": {"storage": "10Gi"}}},
            "10Gi of storage class slow",
        ),
    ],
    ids=["class", "class that does not exist", "size"],
)
@pytest.mark.rule("F47")
def test_recreates_a_claim_only_once_if_it_comes_out_unchanged(
    world: OperatorWorld, asked: Json, imposed: Json, told: str
) -> None:
    """With an admission webhook and a slow provisioner, no claim is deleted repeatedly."""

    def policy(resource: Resource, tree: Json, old: Json | None) -> None:
        if resource == PERSISTENT_VOLUME_CLAIMS and old is None and "tikv" in tree["metadata"]["name"]:
            tree["spec"] |= imposed

    make_class(world, "slow", "example.com/slow")
    world.world.server.webhooks.append(policy)
    cluster = sample("basic")
    cluster["spec"]["tikv"] |= asked
    world.apply(cluster)
    world.run_until(lambda: world.reason() == "VolumeCantChange")
    assert f"tikv-basic-tikv-0 ({told}) is no better after its recreation" in world.progressing
    world.run(60.0)
    deletions = [write for write in world.writes() if write.startswith("delete persistentvolumeclaims")]
    assert ("VolumeCantChange", 1) == (world.reason(), len(deletions))

    # as the message advises
    world.world.server.webhooks.clear()
    world.admin.delete(STORAGE_CLASSES, "slow", "")
    make_class(world, "slow", "sandbox.local/disks")
    world.admin.delete(PERSISTENT_VOLUME_CLAIMS, "tikv-basic-tikv-0", NAMESPACE)
    world.run_until_ready(within=120.0)
    assert {"1Gi"} == {claim["spec"]["resources"]["requests"]["storage"] for claim in claims(world).values()}
