"""Properties of the Jobs of Backups that the recordings don't show (backup.md 3.11)."""

from typing import Any

import pytest

from apis.backup_paths import backup_path
from apis.shared import Json
from member.backups.environment import Secrets
from member.backups.jobs import export_job, restore_job, snapshot_job
from member.backups.naming import claim_name
from member.backups.paths import overlap, same_store, shared
from member.backups.pods import ManagerSettings, condition_of_job, finished
from tests.apis.backups import ACCESS, S3, backup, by_br, restore
from tests.apis.clusters import cluster, minimal

SECRETS: Secrets = {"keys": {"access_key": "a", "secret_key": "b"}, "password": {"password": "c"}}


def pod(spec: Json, **metadata: Any) -> Json:
    """The pod of a snapshot's Job."""
    job = snapshot_job(backup(spec, **metadata), cluster(minimal()), SECRETS, ManagerSettings("manager", "UTC"))
    found: Json = job["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("", "pingcap/br:v8.5.2"),
        ("mirror/br", "mirror/br:v8.5.2"),
        ("mirror/br:nightly", "mirror/br:nightly"),
        ("registry:5000/br", "registry:5000/br:v8.5.2"),
        ("registry:5000/br:v9.0.0", "registry:5000/br:v9.0.0"),
        (f"mirror/br@sha256:{'0' * 64}", f"mirror/br@sha256:{'0' * 64}"),
    ],
)
def test_the_port_of_a_registry_is_no_tag(chosen: str, expected: str) -> None:
    assert expected == pod(by_br(toolImage=chosen))["initContainers"][0]["image"]


def test_without_a_mounted_token_the_main_container_alone_gets_one() -> None:
    made = pod(by_br(automountServiceAccountToken=False))
    assert made["automountServiceAccountToken"] is False
    volume = next(each for each in made["volumes"] if each["name"] == "kube-api-access")
    assert 3607 == volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"]
    assert "/var/run/secrets/kubernetes.io/serviceaccount" in [
        each["mountPath"] for each in made["containers"][0]["volumeMounts"]
    ]
    assert ["/var/lib/br-bin"] == [each["mountPath"] for each in made["initContainers"][0]["volumeMounts"]]


def test_labels_of_the_operator_win_and_the_record_of_apply_stays_behind() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "x"}
    labels = {"app.kubernetes.io/component": "mine", "team": "ops", "app.kubernetes.io/instance": "other"}
    spec = backup(by_br(), labels=labels, annotations=annotations)
    job = snapshot_job(spec, cluster(minimal()), SECRETS, ManagerSettings())
    assert {"note": "x"} == job["metadata"]["annotations"] == job["spec"]["template"]["metadata"]["annotations"]
    made = job["metadata"]["labels"]
    assert ("backup", "ops", "other") == (
        made["app.kubernetes.io/component"],
        made["team"],
        made["app.kubernetes.io/instance"],
    )
    assert made == job["spec"]["template"]["metadata"]["labels"]


def test_an_export_brings_its_own_dumpling_where_an_image_is_named() -> None:
    spec: Json = {"from": ACCESS, "s3": S3, "storageSize": "1Gi", "toolImage": "pingcap/dumpling:v8"}
    made = export_job(backup(spec), SECRETS, ManagerSettings())["spec"]["template"]["spec"]
    tool = made["initContainers"][0]
    assert ("dumpling", "pingcap/dumpling:v8") == (tool["name"], tool["image"])
    assert ["cp /dumpling /var/lib/dumpling-bin/dumpling; echo 'Dumpling copy finished'"] == tool["args"]
    assert ["dumpling-bin", "backup"] == [each["name"] for each in made["volumes"]]


def test_exports_of_one_tidb_share_a_claim() -> None:
    one, other = (backup(by_br(**{"from": {"host": host, "secretName": "s"}})).spec.from_ for host in ("a", "b"))
    assert one
    assert other
    assert claim_name("backup", one) == claim_name("backup", one) != claim_name("backup", other)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"s3": {"provider": "aws", "bucket": "b", "prefix": "/a//c/"}}, "s3://b/a/c"),
        ({"s3": {"provider": "aws", "bucket": "b"}}, "s3://b"),
        ({"gcs": {"projectId": "p", "bucket": "b", "prefix": "a"}}, "gcs://b/a/"),
        ({"s3": {"provider": "aws", "path": "b/a.tgz"}}, "s3://b/a.tgz"),
        ({"gcs": {"projectId": "p", "path": "gcs://b/a.tgz"}}, "gcs://b/a.tgz"),
        ({"s3": {"provider": "aws"}}, ""),
        ({}, ""),
        ({"azblob": {"container": "c", "prefix": "a"}}, "azure://c/a/"),
        ({"local": {"volume": {}, "volumeMount": {"mountPath": "/store"}, "prefix": "a"}}, "local:///store/a"),
    ],
)
def test_the_path_of_a_backup_equals_v1_6(storage: Json, expected: str) -> None:
    assert expected == backup_path(backup({"br": {"cluster": "a"}, **storage}).spec)


def test_paths_overlap_by_whole_names() -> None:
    assert overlap("s3://b/a", "s3://b/a/")
    assert overlap("s3://b", "s3://b/a")
    assert not overlap("s3://b/a", "s3://b/ab")
    assert not overlap("s3://b/a", "")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"persistentVolumeClaim": {"claimName": "one"}}, {"persistentVolumeClaim": {"claimName": "two"}}, False),
        (
            {"name": "v", "persistentVolumeClaim": {"claimName": "one"}},
            {"name": "w", "persistentVolumeClaim": {"claimName": "one", "readOnly": True}},
            True,
        ),
        ({"nfs": {"server": "a", "path": "/b"}}, {"nfs": {"server": "a", "path": "/b", "readOnly": True}}, True),
        ({"nfs": {"server": "a", "path": "/b"}}, {"nfs": {"server": "a", "path": "/c"}}, False),
        ({"hostPath": {"path": "/a"}}, {"hostPath": {"path": "/a", "type": "Directory"}}, True),
    ],
)
def test_volumes_differ_by_their_source_and_not_by_their_mount(one: Json, other: Json, *, same: bool) -> None:
    first, second = (backup({"local": {"volume": each, "volumeMount": {"name": "v"}}}).spec for each in (one, other))
    assert same is same_store(first, second)


@pytest.mark.parametrize("endpoint", ["http://minio:9000/", "http://minio.lab.svc:9000", "https://10.0.0.1:9000", ""])
def test_several_endpoints_may_reach_one_s3(endpoint: str) -> None:
    one, other = (backup({"s3": S3 | {"endpoint": each}}).spec for each in ("http://minio:9000", endpoint))
    assert shared(one, "s3://lab/a", other, "s3://lab/a/b")
    assert not shared(one, "s3://lab/a", other, "s3://other/a")


@pytest.mark.parametrize(
    ("mount", "path", "is_shared"),
    [
        ({"mountPath": "/restored"}, "local:///restored/monday", True),
        ({"mountPath": "/restored"}, "local:///restored/tuesday", False),
        ({"mountPath": "/restored", "subPath": "monday"}, "local:///restored", True),
        ({"mountPath": "/restored", "subPath": "tuesday"}, "local:///restored/monday", False),
        ({"mountPath": "/restored", "subPathExpr": "$(DAY)"}, "local:///restored/tuesday", True),
        ({"mountPath": "/moved"}, "local:///restored/tuesday", True),
    ],
)
def test_one_volume_may_have_two_mounts(mount: Json, path: str, is_shared: bool) -> None:
    def spec(mount: Json) -> Any:
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "backups"}}
        return backup({"br": {"cluster": "a"}, "local": {"volume": volume, "volumeMount": mount}}).spec

    assert is_shared is shared(spec({"mountPath": "/mnt/backup"}), "local:///mnt/backup/monday/", spec(mount), path)


@pytest.mark.rule("backup-4.5")
def test_the_volume_of_the_snapshot_below_a_log_is_mounted_once() -> None:
    def local(claim: str, path: str) -> Json:
        volume = {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
        return {"local": {"volume": volume, "volumeMount": {"name": claim, "mountPath": path}}}

    def paths(snapshot: Json) -> list[str]:
        spec = {"br": {"cluster": "a"}, "restoreMode": "pitr", "pitrFullBackupStorageProvider": snapshot}
        made = restore_job(restore(spec | local("log", "/log")), cluster(minimal()), SECRETS, ManagerSettings())
        found: Json = made["spec"]["template"]["spec"]
        assert len(found["volumes"]) == len({each["name"] for each in found["volumes"]})
        return [each["mountPath"] for each in found["containers"][0]["volumeMounts"]]

    assert ["/var/lib/br-bin", "/log", "/full"] == paths(local("full", "/full"))
    assert ["/var/lib/br-bin", "/log", "/full"] == paths(local("log", "/full"))
    assert ["/var/lib/br-bin", "/log"] == paths(local("log", "/log"))


def test_a_job_has_ended_when_a_condition_says_so_and_is_true() -> None:
    assert "" == finished({}) == finished({"status": {"conditions": [{"type": "Failed", "status": "False"}]}})
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "X"}]}}
    assert ("Failed", "X") == (finished(failed), condition_of_job(failed, "Failed")["reason"])
