"""`tidb-operator plan`: the rehearsal of a change of manifests."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apis.overlays import overlay_annotation
from cli import manifests
from cli.manifests import Manifest
from cli.plan import DOES_NOT, FAILED, GOES, Plan, PlanFailed, html_of, page_of, plan_of, run
from cli.tidb.output import rendered
from kube.objects import Json
from ports.clock import SystemClock
from tests.operator_world import SAMPLES, sample

DOCUMENT = Path(__file__).parents[2] / "docs" / "plan.md"


def cluster(**spec: Any) -> Json:
    """The sample with 1 PD, 1 TiKV and 1 TiDB, and a merged spec."""
    tree = sample("basic")
    for name, part in spec.items():
        tree["spec"][name] = tree["spec"].get(name, {}) | part if isinstance(part, dict) else part
    return tree


def planned(before: Json | None, *after: Json) -> Plan:
    there = [Manifest("old", before)] if before else []
    return plan_of(there, [Manifest("new", each) for each in after], SystemClock())


def steps(plan: Plan) -> list[tuple[str, str]]:
    (document,) = plan.document["clusters"]
    return [(each["pod"], each["act"]) for each in document["steps"]]


@pytest.mark.slow
def test_a_new_cluster_starts_component_by_component() -> None:
    plan = planned(None, cluster())
    assert [("basic-pd-0", "starts"), ("basic-tikv-0", "starts"), ("basic-tidb-0", "starts")] == steps(plan)
    assert GOES == plan.code
    assert "TidbCluster default/basic: 3 pods start in about 49s.\n" in rendered(page_of(plan))


@pytest.mark.slow
def test_a_change_that_a_user_would_not_see_needs_no_pod() -> None:
    plan = planned(cluster(), cluster(tidb={"service": {"type": "NodePort"}}))
    assert ([], GOES) == (steps(plan), plan.code)
    assert "No pod restarts, starts or leaves." in rendered(page_of(plan))


@pytest.mark.slow
def test_the_document_shows_what_the_command_prints() -> None:
    """The upgrade of a cluster without spare members."""
    plan = planned(cluster(), cluster(version="v8.5.3"))
    assert DOES_NOT == plan.code
    assert rendered(page_of(plan)) in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_change_that_the_operator_refuses_says_why() -> None:
    plan = planned(cluster(), cluster(tikv={"requests": {"storage": "1Mi"}}))
    (document,) = plan.document["clusters"]
    assert (DOES_NOT, "refused", []) == (plan.code, document["end"], document["steps"])
    assert "cannot shrink to 1Mi" in document["verdict"]


@pytest.mark.slow
def test_changed_objects_are_named_without_what_users_keep_secret() -> None:
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    there, then = cluster(), cluster()
    then["metadata"]["annotations"] = {"team": "storage"}
    changed = secret | {"stringData": {"password": "hunter2"}}
    before, after = ([Manifest("file", each) for each in pair] for pair in ((there, secret), (then, changed)))
    plan = plan_of(before, after, SystemClock())
    shown = rendered(page_of(plan))
    assert 'metadata.annotations.team: null → "storage"\n' in shown
    assert "Secret default/s: data.password changed\n" in shown
    assert "hunter2" not in f"{shown}{plan.document}{html_of(plan)}"


@pytest.mark.slow
def test_a_field_without_effect_is_a_warning() -> None:
    plan = planned(cluster(), cluster(tidb={"config": {"store": "unistore"}}))
    (document,) = plan.document["clusters"]
    (warning,) = document["warnings"]
    assert "spec.tidb.config.store" in warning
    assert f"Warning: {warning}" in " ".join(rendered(page_of(plan)).split())


@pytest.mark.slow
def test_an_overlay_restarts_its_component_and_a_misspelled_field_is_a_warning() -> None:
    after = cluster()
    overlay = '{"template":{"spec":{"hostPID":true,"hostIPCs":true}}}'
    after["metadata"]["annotations"] = {overlay_annotation("tidb"): overlay}
    plan = planned(cluster(), after)
    (document,) = plan.document["clusters"]
    assert [("basic-tidb-0", "restarts")] == steps(plan)
    assert "hostIPCs: is not known" in document["warnings"][0]


@pytest.mark.slow
@pytest.mark.thorough
def test_suspending_a_cluster_is_no_refusal() -> None:
    plan = planned(cluster(), cluster(suspendAction={"suspendStatefulSet": True}))
    (document,) = plan.document["clusters"]
    assert (DOES_NOT, "held") == (plan.code, document["end"])
    assert document["verdict"].startswith("3 pods leave in about")


@pytest.mark.slow
@pytest.mark.thorough
def test_a_pod_that_never_starts_shows_what_the_change_waits_for() -> None:
    plan = planned(cluster(), cluster(tidb={"nodeSelector": {}, "schedulerName": "nobody"}))
    (document,) = plan.document["clusters"]
    assert (DOES_NOT, "stuck") == (plan.code, document["end"])
    assert "basic-tidb-0" in document["message"]
    assert {"act": "restarts", "ends": None} == {key: document["steps"][0][key] for key in ("act", "ends")}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_nodes_classes_and_certificates_are_those_that_the_manifests_need() -> None:
    tree = cluster(
        tlsCluster={"enabled": True},
        pd={"nodeSelector": {"pool": "pd"}, "storageClassName": "fast"},
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme", "ssd"]}]}
                    ]
                }
            }
        },
    )
    assert GOES == planned(None, tree).code


def test_objects_without_an_effect_on_clusters_are_named() -> None:
    """A rehearsal takes seconds: nothing is rehearsed without a cluster."""
    with pytest.raises(PlanFailed, match="--to has no cluster; name a file with one of TidbCluster, DMCluster"):
        planned(None, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})


@pytest.mark.slow
def test_clusters_that_do_not_become_ready_cannot_be_planned() -> None:
    with pytest.raises(PlanFailed, match="TidbCluster default/basic does not become Ready before the change: ") as why:
        planned(cluster(tikv={"schedulerName": "nobody"}), cluster())
    assert FAILED == why.value.code


@pytest.mark.slow
def test_the_command_reads_files_and_prints_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitored = tmp_path / "new.yaml"
    monitor = [each.body for each in manifests.read(SAMPLES / "monitored.yaml") if each.kind == "TidbMonitor"]
    monitored.write_bytes(b"\n---\n".join(map(msgspec.json.encode, [cluster(), *monitor])))
    assert GOES == run(["--from", str(SAMPLES / "basic.yaml"), "--to", str(monitored), "-o", "json"], {})
    document = json.loads(capsys.readouterr().out)
    assert ["TidbCluster default/basic"] == [each["cluster"] for each in document["clusters"]]
    assert [f"TidbMonitor default/{monitor[0]['metadata']['name']}"] == document["notRehearsed"]
