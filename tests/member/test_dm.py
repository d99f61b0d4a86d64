"""The objects of a DMCluster, compared with a live v1.6.6's (other-resources.md 6.4, 6.5)."""

import msgspec
import pytest

from apis import toml
from apis.defaulting import with_defaults
from apis.dm_components import DMFailureMember, DMWorkerFailureMember
from apis.dmcluster import DMCluster
from apis.ordinals import desired_replicas
from cli.fields.probe import desired_objects
from kube.objects import Json
from member.dm import desired
from member.dm.desired import master_script, worker_script
from tests.member.recordings import Recording, differences

PARTITION = "/spec/updateStrategy/rollingUpdate/partition: ours 3, not recorded"
"""Workers are restarted one by one, each when the masters hear of the one before; on purpose (docs/compat.md)."""


def dm(**spec: object) -> DMCluster:
    """The defaulted cluster `sync` in `etl`, by default with three masters and two workers."""
    plain: Json = {
        "version": "v8.5.2",
        "master": {"replicas": 3, "storageSize": "2Gi"},
        "worker": {"replicas": 2, "storageSize": "10Gi"},
    }
    tree = {"metadata": {"name": "sync", "namespace": "etl", "uid": "u1"}, "spec": plain | spec}
    return with_defaults(msgspec.convert(tree, DMCluster))


@pytest.mark.rule("other-resources-6.4")
def test_all_objects_match_the_recordings() -> None:
    recording = Recording("dev-dm", DMCluster)
    ours = recording.built()
    theirs = {key: item for key, item in recording.objects.items() if "sync-mon" not in key}
    assert theirs.keys() == ours.keys() != set()
    found = {key: differences(theirs[key], ours[key]) for key in theirs}
    role = found.pop("Role/sync-dm-discovery")
    assert [] != role  # ours may read less
    assert {"StatefulSet/sync-dm-worker": [PARTITION]} == {key: lines for key, lines in found.items() if lines}


@pytest.mark.rule("other-resources-6.4")
def test_discovery_may_read_its_cluster_the_labels_of_claims_pods_and_one_secret() -> None:
    (role,) = [each for each in desired_objects(dm(tlsCluster={"enabled": True}), "image") if each["kind"] == "Role"]
    assert [
        ("dmclusters", ["sync"], ["get"]),
        ("persistentvolumeclaims", None, ["list"]),
        ("pods", None, ["get"]),
        ("secrets", ["sync-dm-client-secret"], ["get"]),
    ] == [(rule["resources"][0], rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]]


@pytest.mark.parametrize("name", ["dm-master", "dm-worker"])
@pytest.mark.rule("other-resources-6.9")
def test_with_tls_each_has_its_certificate_and_the_certificates_of_sources(name: str) -> None:
    dc = dm(tlsCluster={"enabled": True}, tlsClientSecretNames=["orders-db"])
    stateful_set, content = {
        "dm-master": (desired.master_stateful_set, desired.master_content),
        "dm-worker": (desired.worker_stateful_set, desired.worker_content),
    }[name]
    pod = stateful_set(dc, "cm")["spec"]["template"]["spec"]
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    assert {f"{name}-tls": f"sync-{name}-cluster-secret", "orders-db": "orders-db"} == secrets
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert (f"/var/lib/{name}-tls", "/var/lib/source-tls/orders-db") == (mounts[f"{name}-tls"], mounts["orders-db"])
    directory = f"/var/lib/{name}-tls"
    expected = {
        "ssl-ca": f"{directory}/ca.crt",
        "ssl-cert": f"{directory}/tls.crt",
        "ssl-key": f"{directory}/tls.key",
    }
    assert expected == toml.loads(content(dc).data["config-file"])


@pytest.mark.rule("other-resources-6.1")
def test_a_size_that_is_not_given_is_10Gi() -> None:
    dc = dm(master={"replicas": 1}, worker={"replicas": 1})
    for stateful_set in (desired.master_stateful_set, desired.worker_stateful_set):
        (claim,) = stateful_set(dc, "cm")["spec"]["volumeClaimTemplates"]
        assert {"requests": {"storage": "10Gi"}} == claim["spec"]["resources"]


@pytest.mark.rule("other-resources-6.2")
def test_there_is_one_more_pod_for_each_removed_master_and_for_each_lost_worker() -> None:
    dc = dm()
    dc.status.master.failure_members = {
        "sync-dm-master-1": DMFailureMember(pod_name="sync-dm-master-1", member_deleted=True),
        "sync-dm-master-2": DMFailureMember(pod_name="sync-dm-master-2"),
    }
    dc.status.worker.failure_members = {"sync-dm-worker-0": DMWorkerFailureMember(pod_name="sync-dm-worker-0")}
    assert (4, 3) == (desired_replicas(dc, "dm-master"), desired_replicas(dc, "dm-worker"))


@pytest.mark.rule("other-resources-6.5")
def test_scripts_follow_the_options() -> None:
    plain, digging = master_script(dm()), master_script(dm(master={"replicas": 3, "startUpScriptVersion": "v1"}))
    assert "nslookup" in plain
    assert "dig " not in plain
    assert "dig " in digging
    assert "DATA_DIR=/var/lib/dm-master/relay" in master_script(dm(master={"replicas": 3, "dataSubDir": "relay"}))
    assert "SCHEME=https" in master_script(dm(tlsCluster={"enabled": True}))
    assert "[[" not in plain + worker_script(dm())
