"""Ready and Progressing as functions of the observation (lifecycle.md 2.3)."""

from typing import Any

import pytest

from apis.tidbcluster import TidbCluster
from controllers.cluster_conditions import component_ready, components_ready, ready, with_progress
from controllers.conditions import ConditionValue, progressing
from kube.objects import Json
from member.outcome import Done, Refused, Waiting
from tests.member.clusters import cluster

SETTLED = {"currentRevision": "1", "updateRevision": "1"}
ROLLING = {"currentRevision": "1", "updateRevision": "2"}


def status(**changed: Any) -> Json:
    """The status of a serving cluster with the given differences."""
    names = ("demo-pd-0", "demo-pd-1", "demo-pd-2")
    members = {name: {"name": name, "id": "1", "clientURL": "http://x", "health": True} for name in names}
    stores = {
        number: {"id": number, "podName": "p", "ip": "i", "leaderCount": 1, "state": "Up"} for number in ("1", "2", "3")
    }
    servers = {name: {"name": name, "health": True} for name in ("demo-tidb-0", "demo-tidb-1")}
    healthy: Json = {
        "pd": {"synced": True, "members": members, "statefulSet": SETTLED},
        "tikv": {"synced": True, "stores": stores, "statefulSet": SETTLED},
        "tidb": {"members": servers, "statefulSet": SETTLED},
    }
    found = {part: healthy[part] | changed.get(part, {}) for part in healthy}
    return {part: each | {"statefulSet": {"readyReplicas": 3} | each["statefulSet"]} for part, each in found.items()}


CLAIM = {"resources": {"requests": {"storage": "1Gi"}}}


def ready_of(tc: TidbCluster) -> ConditionValue:
    return ready(tc, components_ready(tc))


@pytest.mark.parametrize(
    ("changed", "spec", "reason"),
    [
        ({}, {}, "Ready"),
        ({"tikv": {"statefulSet": ROLLING}}, {}, "StatefulSetNotUpToDate"),
        ({"pd": {"synced": False}}, {}, "PDUnhealthy"),
        ({"pd": {"members": {}}, "tikv": {"stores": {}}}, {}, "PDUnhealthy"),
        ({"tikv": {"synced": False}}, {}, "TiKVStoreNotUp"),
        ({"tidb": {"members": {}}}, {}, "TiDBUnhealthy"),
        ({}, {"tiflash": {"replicas": 1, "storageClaims": [CLAIM]}}, "TiFlashStoreNotUp"),
        ({}, {"ticdc": {"replicas": 1}}, "TiCDCCaptureNotReady"),
        ({}, {"tiproxy": {"replicas": 1}}, "TiProxyUnhealthy"),
        ({"tidb": {"members": {}}}, {"without": ("tidb",)}, "Ready"),
    ],
)
@pytest.mark.rule("lifecycle-2.3")
def test_the_first_matching_row_wins(changed: Json, spec: Json, reason: str) -> None:
    found = ready_of(cluster(status=status(**changed), **spec))
    assert (reason == "Ready", reason) == found[:2]


@pytest.mark.parametrize("revisions", [ROLLING, SETTLED])
def test_ready_counts_the_pods_left_in_a_rolling_restart(revisions: Json) -> None:
    live = revisions | {"replicas": 3, "updatedReplicas": 1}
    tc = cluster(status=status(tikv={"statefulSet": live, "phase": "Upgrade"}))
    told = "Statefulset(s) are in progress: 2 of 3 pods of tikv are outdated"
    assert (False, "StatefulSetNotUpToDate", told) == ready_of(tc)
    assert (True, "Ready", "all requested replicas are serving; 2 of 3 pods are outdated") == component_ready(
        tc, "tikv"
    )


def test_the_message_of_ready_ends_with_the_work_in_progress() -> None:
    """`kubectl get tc -o wide` shows it as Status."""
    rolling = (False, "StatefulSetNotUpToDate", "Statefulset(s) are in progress")
    news = (True, "RollingUpdate", "tikv: waiting until pod basic-tikv-2 is Ready")
    told = "Statefulset(s) are in progress; tikv: waiting until pod basic-tikv-2 is Ready"
    assert (False, "StatefulSetNotUpToDate", told) == with_progress(rolling, news)
    assert rolling == with_progress(rolling, progressing({}))


def test_a_cause_that_work_waits_for_stands_once_in_the_message_of_ready() -> None:
    missing = (False, "NoSuchCluster", "TidbCluster default/host does not exist; create it.")
    assert missing == with_progress(missing, (True, "NoSuchCluster", f"tikv: {missing[2].removesuffix('.')}"))
    lost = (True, "PDQuorumLost", "pd: 2 of 3 members are lost")
    told = "TidbCluster default/host does not exist; create it; pd: 2 of 3 members are lost"
    assert (False, "NoSuchCluster", told) == with_progress(missing, lost)


def test_an_unready_pod_does_not_serve_even_if_its_server_is_healthy() -> None:
    tc = cluster(status=status(tidb={"statefulSet": SETTLED | {"readyReplicas": 1}}))
    assert [True, True, False] == [component_ready(tc, name)[0] for name in ("pd", "tikv", "tidb")]
    assert (False, "TiDBUnhealthy") == ready_of(tc)[:2]


def test_the_cause_of_pending_pods_follows_the_error_in_the_spec() -> None:
    wrong = Refused("InvalidSpec", "spec.tikv.config: is not valid TOML")
    waiting = Waiting("PodsNotReady", "1 of 2 pods are Ready; waiting for basic-tidb-1")
    told = f"{wrong.message}; tidb: {waiting.message}"
    assert (False, "InvalidSpec", told) == progressing(
        {"spec": wrong, "pd": Done(), "tidb": waiting}, components={"pd", "tidb"}
    )
    assert (False, "InvalidSpec", wrong.message) == progressing({"spec": wrong, "pd": Done()})


def test_each_component_reports_whether_it_serves() -> None:
    tc = cluster(status=status(tikv={"synced": False}))
    assert [True, False, True] == [component_ready(tc, name)[0] for name in ("pd", "tikv", "tidb")]
    assert "TiKVStoreNotUp" == component_ready(tc, "tikv")[1]
