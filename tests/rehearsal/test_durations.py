"""The time that servers take to start, from the history of their pods."""

from typing import Any

import pytest

from kube.objects import Json
from rehearsal.durations import delays, own_starts
from sandbox.timings import Timings

STARTED = "2026-01-01T00:00:00Z"


def pod(ready: str, component: str = "tidb", restarts: int = 0, status: str = "True") -> Json:
    container = {"name": component, "restartCount": restarts, "state": {"running": {"startedAt": STARTED}}}
    sidecar = {"name": "slowlog", "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}}}
    conditions = [{"type": "Ready", "status": status, "lastTransitionTime": ready}]
    return {
        "metadata": {
            "namespace": "a",
            "name": f"basic-{component}-0",
            "creationTimestamp": "2025-12-31T23:59:00Z",
            "labels": {"app.kubernetes.io/component": component},
        },
        "status": {"conditions": conditions, "containerStatuses": [sidecar, container]},
    }


def test_the_shortest_start_of_a_component_counts() -> None:
    """The other pod has not been Ready for a moment since. The pods waited a minute for their images."""
    pods = [pod("2026-01-01T00:00:40Z"), pod("2026-01-01T00:50:00Z"), pod("2026-01-01T00:00:09Z", "ticdc")]
    assert {"tidb": 40.0, "ticdc": 9.0} == own_starts(pods)


def test_a_tikv_has_started_when_its_store_is_up() -> None:
    """Its pod has no readiness probe."""
    store = {"podName": "basic-tikv-0", "state": "Up", "lastTransitionTime": "2026-01-01T00:00:31Z"}
    cluster = {"metadata": {"namespace": "a"}, "status": {"tikv": {"stores": {"1": store}}}}
    assert {"tikv": 31.0} == own_starts([pod("2026-01-01T00:00:02Z", "tikv")], [cluster])
    assert {} == own_starts([pod("2026-01-01T00:00:02Z", "tikv")])


@pytest.mark.parametrize(("component", "part"), [("pd", "pd"), ("dm-master", "master")])
def test_a_member_has_started_when_its_quorum_reports_it(component: str, part: str) -> None:
    """Its pod has no readiness probe. At its first start it had to join."""
    name = f"basic-{component}-0"
    member = {"health": True, "lastTransitionTime": "2026-01-01T00:00:06Z"}
    cluster = {"metadata": {"namespace": "a"}, "status": {part: {"members": {name: member}}}}
    claim: Json = {"metadata": {"namespace": "a", "name": name, "creationTimestamp": "2025-12-31T23:00:00Z"}}
    restarted = pod("2026-01-01T00:00:01Z", component)
    restarted["spec"] = {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}, {"name": "config"}]
    }
    assert {component: 6.0} == own_starts([restarted], [cluster], [claim])
    claim["metadata"]["creationTimestamp"] = restarted["metadata"]["creationTimestamp"]
    assert {} == own_starts([restarted], [cluster], [claim])


def test_a_store_says_nothing_if_pd_has_started_again_since() -> None:
    """Then PD has reported all stores as Up at one moment, long after they were."""
    store = {"podName": "basic-tikv-0", "state": "Up", "lastTransitionTime": "2026-01-01T00:05:00Z"}
    cluster = {"metadata": {"namespace": "a"}, "status": {"tikv": {"stores": {"1": store}}}}
    member = pod("2026-01-01T00:04:00Z", "pd")
    member["status"]["containerStatuses"][1]["state"]["running"]["startedAt"] = "2026-01-01T00:04:00Z"
    member["spec"] = {}
    assert {} == own_starts([pod("2026-01-01T00:00:02Z", "tikv"), member], [cluster])


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"ready": "2026-01-09T00:00:00Z"}, id="Ready again after days"),
        pytest.param({"ready": "2026-01-01T00:00:40Z", "restarts": 1}, id="a container has restarted"),
        pytest.param({"ready": ""}, id="no time"),
    ],
)
def test_a_pod_without_a_known_start_says_nothing(told: dict[str, Any]) -> None:
    assert {} == own_starts([pod(**told)])


def test_only_later_starts_than_typical_ones_are_the_clusters_own() -> None:
    typical = Timings.real()
    assert {"tidb": 60.0 - typical.tidb_start} == delays({"tidb": 60.0, "pd": 1.0}, typical)
