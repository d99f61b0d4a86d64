"""The shell around a pod template, and claims (objects.md 3.8, 5)."""

import pytest

from member.pd import desired as pd
from member.tidb import desired as tidb
from member.tikv import desired as tikv
from tests.member.clusters import cluster, names


@pytest.mark.rule("objects-3.8")
def test_the_shell() -> None:
    base = {
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/instance": "prod",
        "app.kubernetes.io/component": "tikv",
    }
    made = tikv.stateful_set(cluster(labels={"app.kubernetes.io/instance": "prod"}), "cm")
    assert base == made["metadata"]["labels"] == made["spec"]["selector"]["matchLabels"]
    assert ("demo-tikv", "ns") == (made["metadata"]["name"], made["metadata"]["namespace"])
    assert [
        {
            "apiVersion": "pingcap.com/v1alpha1",
            "kind": "TidbCluster",
            "name": "demo",
            "uid": "uid-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ] == made["metadata"]["ownerReferences"]
    assert ("demo-tikv-peer", 3) == (made["spec"]["serviceName"], made["spec"]["replicas"])
    assert {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}} == made["spec"]["updateStrategy"]
    assert "annotations" not in made["metadata"]


@pytest.mark.parametrize(
    ("own", "whole", "expected"),
    [("", "", "Parallel"), ("", "OrderedReady", "OrderedReady"), ("x", "OrderedReady", "Parallel")],
)
@pytest.mark.rule("objects-3.3")
def test_pod_management_policy(own: str, whole: str, expected: str) -> None:
    tc = cluster(pd={"podManagementPolicy": own}, podManagementPolicy=whole)
    assert expected == pd.stateful_set(tc, "cm")["spec"]["podManagementPolicy"]


@pytest.mark.rule("objects-3.8")
def test_on_delete_is_the_users_wish() -> None:
    tc = cluster(statefulSetUpdateStrategy="OnDelete")
    assert {"type": "OnDelete"} == pd.stateful_set(tc, "cm")["spec"]["updateStrategy"]


@pytest.mark.rule("objects-3.8")
def test_failover_adds_replicas_and_moves_the_partition() -> None:
    failed = {"failureMembers": {"demo-pd-0": {"podName": "demo-pd-0", "memberDeleted": True}}}
    spec = pd.stateful_set(cluster(status={"pd": failed}), "cm")["spec"]
    assert (4, 4) == (spec["replicas"], spec["updateStrategy"]["rollingUpdate"]["partition"])


@pytest.mark.rule("objects-4.4")
def test_delete_slots_are_copied_and_have_no_effect() -> None:
    made = pd.stateful_set(cluster(annotations={"pd.tidb.pingcap.com/delete-slots": "[1]"}), "cm")
    assert {"delete-slots": "[1]"} == made["metadata"]["annotations"]
    assert 3 == made["spec"]["updateStrategy"]["rollingUpdate"]["partition"]


@pytest.mark.rule("objects-5")
def test_claims_carry_name_mode_size_and_classes_only() -> None:
    volumes = [
        {"name": "wal", "storageSize": "2Gi", "mountPath": "/wal"},
        {"name": "raw", "storageSize": "3Gi", "storageClassName": "fast", "volumeAttributesClassName": "gold"},
    ]
    fields = {"storageClassName": "slow", "volumeAttributesClassName": "tin", "storageVolumes": volumes}
    made = tikv.stateful_set(cluster(tikv=fields), "cm")

    def claim(name: str, size: str, storage: str, attributes: str) -> object:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage,
            "volumeAttributesClassName": attributes,
        }
        return {"metadata": {"name": name}, "spec": spec}

    assert [
        claim("tikv", "1Gi", "slow", "tin"),
        claim("tikv-wal", "2Gi", "slow", "tin"),
        claim("tikv-raw", "3Gi", "fast", "gold"),
    ] == made["spec"]["volumeClaimTemplates"]
    mounts = made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "tikv-wal", "mountPath": "/wal"} in mounts
    assert "tikv-raw" not in names(mounts)


@pytest.mark.rule("objects-5")
def test_without_a_class_the_cluster_decides() -> None:
    claim = pd.stateful_set(cluster(), "cm")["spec"]["volumeClaimTemplates"][0]
    assert {"accessModes", "resources"} == claim["spec"].keys()


@pytest.mark.rule("objects-4.4")
def test_tidb_has_no_data_volume() -> None:
    assert "volumeClaimTemplates" not in tidb.stateful_set(cluster(), "cm")["spec"]
