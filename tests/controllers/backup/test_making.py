"""A Backup is validated, waits for its cluster, and gets one Job (backup.md 3.4, 3.5)."""

import pytest

from apis.shared import Json
from kube.resources import (
    BACKUPS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    TIDB_CLUSTERS,
)
from tests.apis.backups import ACCESS, S3, by_br, tree
from tests.apis.clusters import minimal
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

FINALIZER = "tidb.pingcap.com/backup-protection"


def test_a_backup_of_a_ready_cluster_gets_its_job(backups: BackupsWorld) -> None:
    backups.add()

    assert ["backup-demo"] == backups.jobs()
    assert "Scheduled" == backups.phase()
    assert ("True", "", "") == backups.condition("Scheduled")
    assert "finalizers" not in backups.backup()["metadata"]
    reference = backups.job()["metadata"]["ownerReferences"][0]
    assert ("Backup", "demo", True) == (reference["kind"], reference["name"], reference["blockOwnerDeletion"])
    assert ("SuccessfulCreate", "create job lab/backup-demo for cluster demo Backup successful") in backups.events()


@pytest.mark.parametrize(
    ("policy", "expected"), [("Delete", [FINALIZER]), ("OnFailure", [FINALIZER]), ("Retain", None)]
)
def test_a_finalizer_keeps_a_backup_whose_files_are_removed_with_it(
    backups: BackupsWorld, policy: str, expected: list[str] | None
) -> None:
    backups.add(cleanPolicy=policy)
    assert expected == backups.backup()["metadata"].get("finalizers")


def test_a_backup_of_a_cluster_that_does_not_serve_records_once_what_it_waits_for(backups: BackupsWorld) -> None:
    """v1.6 waits without status, event or log line."""
    backups.set_serving(members=1)
    backups.add()
    backups.run(15)
    why = "waiting for TidbCluster lab/basic, with which BR cannot work: PD has no quorum of healthy, Ready members yet"
    assert ("True", "ClusterNotServing", why) == backups.condition("Waiting")
    assert ([], "") == (backups.jobs(), backups.phase())
    before = backups.backup()
    backups.run(600)
    assert before == backups.backup()
    assert 1 == backups.events().count(("ClusterNotServing", why))

    backups.set_serving()
    backups.run(15)
    assert (["backup-demo"], "Scheduled") == (backups.jobs(), backups.phase())
    assert ("False", "Continued", "") == backups.condition("Waiting")


@pytest.mark.parametrize("unready", ["ticdc", "tidb", "tiflash", "tiproxy", "pump"])
def test_a_backup_does_not_wait_for_what_br_does_not_need(backups: BackupsWorld, unready: str) -> None:
    backups.set_serving()
    claims = {"storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}]} if unready == "tiflash" else {}
    spec = {unready: {"replicas": 2, "baseImage": f"pingcap/{unready}"} | claims}
    backups.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"spec": spec})
    backups.add()
    assert (["backup-demo"], ("", "", "")) == (backups.jobs(), backups.condition("Waiting"))


@pytest.mark.parametrize(
    ("members", "stores", "said"),
    [
        (2, 3, ""),
        (0, 3, "PD has no quorum of healthy, Ready members yet"),
        (3, 2, ""),
        (3, 1, "2 of 3 TiKV stores are not Up (basic-tikv-1, basic-tikv-2); regions may lack a majority"),
        (3, 0, "no TiKV store is Up yet"),
    ],
)
@pytest.mark.parametrize("kind", ["snapshot", "log"])
def test_a_backup_waits_for_pd_and_tikv(backups: BackupsWorld, kind: str, members: int, stores: int, said: str) -> None:
    backups.set_serving(members=members, stores=stores)
    backups.add(backupMode=kind)
    backups.run(15)
    _, _, message = backups.condition("Waiting")
    assert (said, not said) == (message.partition("BR cannot work: ")[2], bool(backups.jobs()))


@pytest.mark.parametrize(("reason", "waits"), [("PDQuorumLost", True), ("PDNoLeader", True), ("PDUnreachable", False)])
def test_a_backup_waits_for_the_end_of_an_outage_and_quotes_it(
    backups: BackupsWorld, reason: str, *, waits: bool
) -> None:
    backups.set_serving()
    outage = {"type": "Ready", "status": "False", "reason": reason, "message": "1 of 3 members is running. See a page."}
    status = {"status": {"pd": {"conditions": [outage]}}}
    backups.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, status, subresource="status")
    backups.add()
    backups.run(15)
    _, _, message = backups.condition("Waiting")
    said = "1 of 3 members is running. See a page" if waits else ""
    assert (said, not waits) == (message.partition("BR cannot work: ")[2], bool(backups.jobs()))


def test_a_backup_waits_while_tikv_is_upgraded_to_another_image(backups: BackupsWorld) -> None:
    backups.set_serving(phase="Upgrade")
    for number, image in enumerate(("pingcap/tikv:v8.5.2", "pingcap/tikv:v8.1.0")):
        backups.add_tikv_pod(number, image)
    backups.add()
    backups.run(15)
    message = (
        "waiting for TidbCluster lab/basic: TiKV is being upgraded, and BR must fit all of it: "
        "pingcap/tikv:v8.5.2 does not run yet in basic-tikv-1"
    )
    assert (("True", "TiKVUpgrading", message), []) == (backups.condition("Waiting"), backups.jobs())


def test_a_restart_of_tikv_with_the_same_image_delays_no_backup(backups: BackupsWorld) -> None:
    backups.set_serving(phase="Upgrade", stores=2)
    backups.add_tikv_pod(0, "pingcap/tikv:v8.5.2")
    backups.add()
    assert ["backup-demo"] == backups.jobs()


def test_a_wait_that_is_over_soon_costs_no_write(backups: BackupsWorld) -> None:
    backups.set_serving(members=1)
    backups.add()
    backups.run(4)
    assert {} == backups.status()
    backups.set_serving()
    backups.run(10)
    assert (["backup-demo"], ("", "", "")) == (backups.jobs(), backups.condition("Waiting"))


@pytest.mark.rule("backup-7.6")
def test_a_part_of_a_cluster_is_refused_with_the_name_of_the_whole(backups: BackupsWorld) -> None:
    """v1.6 has BR ask a PD that is not there."""
    spec = {"version": "v8.5.2", "cluster": {"name": "basic"}, "tikv": minimal()["tikv"]}
    part = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": "part"}, "spec": spec}
    backups.admin.create(TIDB_CLUSTERS, part, NAMESPACE)
    backups.set_ready("part", is_ready=True)
    backups.add(br={"cluster": "part"})
    message = "TidbCluster lab/part has no PD of its own; name lab/basic in spec.br.cluster"
    assert ("True", "NoPD", message) == backups.condition("RetryFailed")


def test_a_backup_of_another_namespaces_cluster_gets_its_job_when_that_consents(backups: BackupsWorld) -> None:
    """It reads all data of the cluster."""
    backups.admin.create(NAMESPACES, {"metadata": {"name": "far"}})
    keys = {"metadata": {"name": "keys"}, "data": {"access_key": "QUs=", "secret_key": "U0s="}}
    backups.admin.create(SECRETS, keys, "far")
    backups.admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "tidb-backup-manager"}}, "far")
    spec = by_br(br={"cluster": "basic", "clusterNamespace": NAMESPACE})
    backups.admin.create(BACKUPS, tree("Backup", spec, namespace="far"), "far")
    backups.consent("near")
    backups.run(30)
    (condition,) = backups.admin.get(BACKUPS, "demo", "far").decode()["status"]["conditions"]
    assert ("Waiting", "ReferenceNotAllowed") == (condition["type"], condition["reason"])
    command = "kubectl -n lab annotate tidbcluster basic tidb.pingcap.com/allow-references-from=far"
    assert condition["message"].endswith(f"ask its owner to run: {command}")
    assert [] == backups.admin.list_page(JOBS, "far").items

    backups.consent("near", "far")
    assert ["backup-demo"] == [each.metadata.name for each in backups.admin.list_page(JOBS, "far").items]
    backups.consent()
    backups.run(30)
    assert ["backup-demo"] == [each.metadata.name for each in backups.admin.list_page(JOBS, "far").items]


def test_a_cluster_that_is_not_there_is_named_and_waited_for(backups: BackupsWorld) -> None:
    backups.add(br={"cluster": "other"})
    message = (
        "failed to fetch tidbcluster lab/other: there is none; "
        "correct spec.br.cluster and spec.br.clusterNamespace, or create it"
    )
    assert ("True", "failed to fetch tidbcluster lab/other", message) == backups.condition("RetryFailed")
    before = backups.backup()["metadata"]["resourceVersion"]
    backups.run(60)
    assert ("", "", "") == backups.condition("Waiting")  # one condition is enough
    assert before == backups.backup()["metadata"]["resourceVersion"]

    backups.add_cluster("other")
    backups.run(15)
    assert "Scheduled" == backups.phase()


@pytest.mark.rule("F1")
def test_a_cluster_that_no_cache_shows_is_read_live(backups: BackupsWorld) -> None:
    """The watch lags behind, or `-selector` leaves the cluster to another operator: it exists all the same."""
    backups.operator.caches[TIDB_CLUSTERS].blind = True
    backups.add_cluster("other")
    backups.add(br={"cluster": "other"})
    assert (["backup-demo"], "Scheduled") == (backups.jobs(), backups.phase())


def test_an_invalid_backup_says_why_and_is_checked_again_after_a_correction(backups: BackupsWorld) -> None:
    """v1.6 never checks it again (3.6)."""
    backups.add(s3={"provider": "aws"})
    message = "spec.s3.bucket: is required; name the bucket"
    assert ("True", "InvalidSpec", message) == backups.condition("Invalid")
    assert ([], "Invalid") == (backups.jobs(), backups.phase())
    assert ("InvalidSpec", message) in backups.events()

    backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"spec": {"s3": S3}})
    backups.run()
    assert (["backup-demo"], "Scheduled") == (backups.jobs(), backups.phase())
    assert "False" == backups.condition("Invalid")[0]


def test_unsupported_fields_are_reported_by_name(backups: BackupsWorld) -> None:
    backups.add(backupMode="volume-snapshot")
    _, reason, message = backups.condition("Invalid")
    assert "InvalidSpec" == reason
    assert message.startswith('spec.backupMode: "volume-snapshot": is not offered; use snapshot')
    assert [] == backups.jobs()


@pytest.mark.parametrize("end", ["VolumeBackupComplete", "VolumeBackupFailed"])
@pytest.mark.parametrize("policy", ["Retain", "Delete"])
@pytest.mark.rule("3.10")
def test_a_volume_snapshot_that_v1_6_has_ended_stays_as_it_is(backups: BackupsWorld, end: str, policy: str) -> None:
    said = [{"type": kind, "status": "True"} for kind in ("Scheduled", "Running", end)]
    spec = by_br(backupMode="volume-snapshot", cleanPolicy=policy)
    body = tree("Backup", spec, status={"phase": end, "conditions": said}, name="demo", namespace=NAMESPACE)
    body["metadata"]["finalizers"] = [FINALIZER] if policy == "Delete" else []
    before = backups.admin.create(BACKUPS, body, NAMESPACE).decode()
    backups.run(60)
    assert (before, []) == (backups.backup(), backups.jobs())


def test_a_secret_that_is_missing_is_named_and_waited_for(backups: BackupsWorld) -> None:
    backups.add(s3=S3 | {"secretName": "none"})
    assert ("True", "GetS3SecretFailed", "Secret none does not exist; create it with the credentials") == (
        backups.condition("RetryFailed")
    )
    backups.add_secret("none", access_key="AK", secret_key="SK")
    backups.run(120)
    assert "Scheduled" == backups.phase()


def test_an_export_gets_a_claim_that_is_shared(backups: BackupsWorld) -> None:
    backups.add_secret("password", password="PW")
    export: Json = {"br": None, "from": ACCESS, "storageSize": "10Gi"}
    backups.add(**export)
    backups.add("second", **export)
    backups.add("third", **export | {"storageSize": "20Gi"})

    claims = backups.admin.list_page(PERSISTENT_VOLUME_CLAIMS, NAMESPACE).items
    assert [()] == [each.metadata.owner_references for each in claims]
    assert ["backup-demo", "backup-second"] == backups.jobs()
    _, reason, message = backups.condition("RetryFailed", "third")
    assert "PVCStorageSizeTooSmall" == reason
    assert message.startswith("spec.storageSize: 20Gi: claim backup-pvc-")


def test_a_job_of_another_is_left_alone(backups: BackupsWorld) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}
    body = {"metadata": {"name": "backup-demo"}, "spec": {"template": template}}
    backups.admin.create(JOBS, body, NAMESPACE)
    backups.add()
    assert ("True", "CreateBackupJobFailed") == backups.condition("RetryFailed")[:2]
    assert "ownerReferences" not in backups.job()["metadata"]


@pytest.mark.rule("R06")
def test_a_process_that_crashed_after_creating_the_job_continues(backups: BackupsWorld) -> None:
    """v1.6 treats its own Job as a failure if its cache lacks it."""
    backups.add()
    uid = backups.job()["metadata"]["uid"]
    backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"status": None})
    backups.restart()
    backups.run()
    assert ("Scheduled", uid) == (backups.phase(), backups.job()["metadata"]["uid"])


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_the_pods_result_is_final(backups: BackupsWorld, kind: str) -> None:
    backups.add()
    backups.say(kind)
    backups.end()
    before = backups.backup()
    backups.run(3600)
    assert before == backups.backup()


def test_a_backup_whose_status_is_replaced_after_its_completion_has_failed(backups: BackupsWorld) -> None:
    """In v1.6 it stays Scheduled forever."""
    backups.add()
    backups.say("Complete", commitTs="9", backupPath="s3://lab/full")
    backups.end(kind="Complete", reason="CompletionsReached")
    backups.admin.patch(BACKUPS, "demo", NAMESPACE, {"status": None})
    backups.run(90)
    message = (
        "Job backup-demo has ended well, and another client has removed the result of its pod from the status; the "
        "files are in s3://lab/full, and stay"
    )
    assert ("True", "StatusReplaced", message) == backups.condition("Failed")


def test_a_job_that_is_deleted_before_it_ended_is_a_failure(backups: BackupsWorld) -> None:
    """v1.6 leaves the Backup Scheduled forever, and with it the schedule that waits for it."""
    backups.add()
    backups.say("Running")
    backups.admin.delete(JOBS, "backup-demo", NAMESPACE, propagation="Background")
    backups.run(5)
    message = "Job backup-demo was deleted before it ended; create another Backup to try again"
    assert ("True", "JobDeleted", message) == backups.condition("Failed")
    assert [] == backups.jobs()


def test_a_pod_that_outlives_its_job_may_still_report_its_result(backups: BackupsWorld) -> None:
    """The pod of a Job deleted in the background lives on for a moment, and may still report Complete."""
    backups.add()
    backups.say("Running")
    pod = {
        "metadata": {"name": "backup-demo-x", "labels": {"job-name": "backup-demo"}},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    backups.admin.create(PODS, pod, NAMESPACE)
    backups.admin.delete(JOBS, "backup-demo", NAMESPACE, propagation="Orphan")
    backups.run(30)
    assert "Running" == backups.phase()
    backups.say("Complete")
    backups.admin.delete(PODS, "backup-demo-x", NAMESPACE)
    backups.run(30)
    assert ("Complete", ("", "", "")) == (backups.phase(), backups.condition("Failed"))


def test_a_job_that_is_deleted_after_the_end_changes_nothing(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Complete")
    backups.end(kind="Complete", reason="CompletionsReached")
    backups.admin.delete(JOBS, "backup-demo", NAMESPACE, propagation="Background")
    backups.run(60)
    assert "Complete" == backups.phase()


def test_writes_nothing_while_the_job_runs(backups: BackupsWorld) -> None:
    backups.add()
    backups.say("Running")
    before = backups.backup()
    backups.operator.dataplane.requests.clear()
    backups.run(600)
    assert before == backups.backup()


def test_reports_what_refuses_its_pod(backups: BackupsWorld) -> None:
    backups.world.faults.creation_refused("pods")
    backups.add()
    backups.run(60)
    status, reason, message = backups.condition("Scheduled")
    assert ("True", "PodCannotStart", True) == (status, reason, "exceeded quota: sandbox" in message)


def test_reports_why_a_pod_cannot_start_until_it_starts(backups: BackupsWorld) -> None:
    """v1.6 says nothing: the pod, which could, does not run."""
    backups.add()
    backups.run(20)
    assert ("True", "", "") == backups.condition("Scheduled")
    backups.run(40)
    (pod,) = [each.metadata.name for each in backups.admin.list_page(PODS, NAMESPACE).items]
    told = f"pod {pod}: Unschedulable: 0/0 nodes are available: no nodes."
    way_out = "correct that, or delete this Backup and create it again with another spec"
    assert ("True", "PodCannotStart", f"{told}; {way_out}") == backups.condition("Scheduled")
    assert ("PodCannotStart", f"{told}; {way_out}") in backups.events()
    before = backups.backup()
    backups.run(120)
    assert before == backups.backup()

    backups.say("Running")
    backups.run(1)
    assert (("True", "", ""), "Running") == (backups.condition("Scheduled"), backups.phase())
