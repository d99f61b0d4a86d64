"""A cluster that serves: nothing is found while it is well or changed, and what befalls it is (13.1, 13.2)."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from apis.crd import TIDB_CLUSTER, definition
from apis.overlays import overlay_annotation
from cli.doctor.finding import Severity
from kube.objects import Json
from kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    TIDB_CLUSTERS,
)
from tests.cli.doctor.looking import LEASE, findings, look, reasons, renew
from tests.operator_world import NAMESPACE, OperatorWorld, sample

_SOON, _LATER = timedelta(minutes=2), timedelta(minutes=10)


@pytest.fixture(scope="module")
def world() -> Iterator[OperatorWorld]:
    """A cluster 3/3/2 whose pods are Guaranteed; tests leave it as it was."""
    world = OperatorWorld()
    tree = sample("basic")
    alike: Json = {"cpu": "1", "memory": "1Gi"}
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        storage = {"storage": "1Gi"} if component != "tidb" else {}
        tree["spec"][component] |= {"replicas": replicas, "requests": alike | storage, "limits": alike}
    tree["spec"]["tidb"]["separateSlowLog"] = False
    world.apply(tree)
    world.run_until_ready()
    yield world
    world.stop()


def finds_nothing_until_ready(world: OperatorWorld, within: float = 90.0) -> None:
    """Look every second until the cluster has done what its spec wants."""
    world.run(0.1)
    end = world.clock.now() + within
    while not (world.is_ready() and world.reason() == "Done"):
        assert [] == findings(world, "basic")
        assert world.clock.now() < end, world.progressing
        world.run(1.0)


@pytest.mark.slow
def test_a_healthy_cluster_has_no_finding(world: OperatorWorld) -> None:
    assert [] == findings(world, "basic")
    assert [] == findings(world, "basic", _LATER)


@pytest.mark.slow
def test_a_rolling_cluster_has_no_finding(world: OperatorWorld) -> None:
    world.change(tikv={"config": '[log]\nlevel = "warn"\n'}, tidb={"config": '[log]\nlevel = "warn"\n'})
    finds_nothing_until_ready(world)


@pytest.mark.slow
def test_a_cluster_that_scales_has_no_finding(world: OperatorWorld) -> None:
    for replicas in (4, 3):
        world.change(tikv={"replicas": replicas})
        finds_nothing_until_ready(world)


@pytest.mark.slow
def test_a_cluster_that_is_suspended_and_resumed_has_no_finding(world: OperatorWorld) -> None:
    world.change(suspendAction={"suspendStatefulSet": True})
    for _ in range(20):
        world.run(1.0)
        assert [] == findings(world, "basic")
    assert [] == world.every(PODS)[1:]  # discovery runs on
    world.change(suspendAction=None)
    finds_nothing_until_ready(world)


@pytest.mark.rule("13.2")
def test_reports_an_overlay_that_is_refused(world: OperatorWorld) -> None:
    key = overlay_annotation("tidb")
    for text in ('{"template":{"spec":{"hostNetwork":true}}}', None):
        world.admin.patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"metadata": {"annotations": {key: text}}})
        world.run(2.0)
        found = findings(world, "basic")
        fields = {f'metadata.annotations["{key}"].template.spec.hostNetwork'} if text else set()
        assert fields == {finding.field for finding in found if finding.reason == "InvalidSpec"}, found


@pytest.mark.slow
@pytest.mark.rule("13.1")
def test_reports_a_failing_readiness_probe_after_five_minutes(world: OperatorWorld) -> None:
    heal = world.world.faults.pod_unready(f"{NAMESPACE}/basic-tidb-1")
    world.run(2.0)
    assert "ReadinessProbeFails" not in reasons(findings(world, "basic"))
    (finding,) = (each for each in findings(world, "basic", _LATER) if each.reason == "ReadinessProbeFails")
    assert ("Pod basic-tidb-1",) == finding.objects
    assert "Readiness probe failed: HTTP probe failed with statuscode: 500" in finding.message
    heal()
    world.run_until_ready()


@pytest.mark.slow
@pytest.mark.rule("13.2")
def test_reports_a_lost_pd_quorum_and_why_its_pods_do_not_run(world: OperatorWorld) -> None:
    heals = [world.world.faults.pod_crash_loop(f"{NAMESPACE}/basic-pd-{ordinal}") for ordinal in (1, 2)]
    world.run(40.0)
    found = findings(world, "basic", _SOON)
    assert {"PDQuorumLost", "CrashLoop"} <= reasons(found)
    (crash,) = (each for each in found if each.reason == "CrashLoop")
    assert ("Pod basic-pd-1", "Pod basic-pd-2") == crash.objects
    assert "container pd ends again and again (Error, exit code 1" in crash.message
    for heal in heals:
        heal()
    world.run_until_ready(within=240)


@pytest.mark.rule("13.2")
def test_reports_an_operator_that_cannot_reach_pd(world: OperatorWorld) -> None:
    # PD's pods crashed in another test
    world.run(60.0)
    heal = world.world.faults.network_cut(f"{NAMESPACE}/basic-pd-*")
    world.run(30.0)
    assert "DataPlaneUnreachable" in reasons(findings(world, "basic", _SOON))
    heal()
    world.run_until_ready()


@pytest.mark.rule("13.2")
def test_judges_operators_by_their_leases(world: OperatorWorld) -> None:
    admin, now = world.admin, world.clock.wall()
    renew(admin, now)
    assert "OperatorNotRunning" in reasons(look(world, "basic", _SOON))
    renew(admin, now, scope='{"namespace":"","selector":"team=a"}')
    (finding,) = look(world, "basic")
    assert ("NotManaged", "metadata.labels") == (finding.reason, finding.field)
    assert "default/tidb-controller-manager: all namespaces, selector 'team=a'" in finding.message
    renew(admin, now, f"{LEASE}-other")
    renew(admin, now)
    assert {"TwoOperators"} == reasons(look(world, "basic"))
    admin.delete(LEASES, f"{LEASE}-other", NAMESPACE)
    assert [] == look(world, "basic")
    admin.delete(LEASES, LEASE, NAMESPACE)
    assert {"OperatorNotRunning"} == reasons(look(world, "basic"))


@pytest.mark.rule("13.2")
def test_reports_a_definition_of_an_older_version(world: OperatorWorld) -> None:
    older = definition(TIDB_CLUSTER)
    spec = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["tiproxy"], spec["pd"]["properties"]["spareVolReplaceReplicas"]
    before = world.admin.get(CUSTOM_RESOURCE_DEFINITIONS, str(TIDB_CLUSTERS)).decode()
    _define(world, older)
    (finding,) = findings(world, "basic")
    assert "CRDOlderThanOperator" == finding.reason
    assert "does not have spec.pd.spareVolReplaceReplicas, spec.tiproxy" in finding.message
    _define(world, before)


def _define(world: OperatorWorld, crd: Json) -> None:
    change = {"spec": {"versions": crd["spec"]["versions"]}}
    world.admin.patch(CUSTOM_RESOURCE_DEFINITIONS, str(TIDB_CLUSTERS), "", change)


@pytest.mark.rule("13.1")
def test_reports_a_node_under_disk_pressure(world: OperatorWorld) -> None:
    node = world.get(PODS, "basic-tikv-0")["spec"]["nodeName"]
    status = world.admin.get(NODES, node).decode()["status"]
    full = {"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure", "message": "full"}
    sick = {"status": status | {"conditions": [*status["conditions"], full]}}
    world.admin.patch(NODES, node, "", sick, subresource="status")
    (finding,) = findings(world, "basic")
    assert ("NodeUnderPressure", (f"Node {node}",), "DiskPressure") == (finding.reason, finding.objects, finding.field)
    world.admin.patch(NODES, node, "", {"status": status}, subresource="status")


@pytest.mark.rule("13.1")
def test_reports_a_claim_that_a_finalizer_keeps(world: OperatorWorld) -> None:
    name = "tikv-basic-tikv-0"
    world.admin.delete(PERSISTENT_VOLUME_CLAIMS, name, NAMESPACE)
    assert "DeletionStuck" not in reasons(findings(world, "basic"))
    (finding,) = (each for each in findings(world, "basic", _LATER) if each.reason == "DeletionStuck")
    assert (f"PersistentVolumeClaim {name}",) == finding.objects
    assert "kubernetes.io/pvc-protection (a pod still uses it)" in finding.message


@pytest.mark.rule("13.1")
def test_reports_a_lost_node_with_its_pods_and_volumes(world: OperatorWorld) -> None:
    node = world.get(PODS, "basic-tikv-1")["spec"]["nodeName"]
    world.world.faults.node_gone(node)
    world.run(5.0)
    found = findings(world, "basic")
    assert {"NodeNotReady", "VolumeNodeGone"} <= reasons(found)
    (lost,) = (each for each in found if each.reason == "NodeNotReady")
    assert ((f"Node {node}",), Severity.PROBLEM) == (lost.objects, lost.severity)
    assert "basic-tikv-1" in lost.message
    (claims,) = (each for each in found if each.reason == "VolumeNodeGone")
    assert "PersistentVolumeClaim tikv-basic-tikv-1" in claims.objects
