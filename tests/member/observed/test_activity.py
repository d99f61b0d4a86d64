"""What the operator knows about a pod that is not Ready (docs/rules/silence.md)."""

import msgspec
import pytest

from kube.objects import Json
from member.observed.nodes import Activity, NodeState, activity
from member.observed.pod import Pod

_ENDED: Json = {"terminated": {"exitCode": 1, "reason": "Error"}}
_CRASHES: Json = {"waiting": {"reason": "CrashLoopBackOff"}}
_NO_IMAGE: Json = {"waiting": {"reason": "ImagePullBackOff"}}
_RUNS: Json = {"running": {"startedAt": "2026-11-28T00:00:00Z"}}


def pod(state: Json | None, *, restarts: int = 0, node: str = "node-1", **status: object) -> Pod:
    """A pod whose container pd is in a state; None if no kubelet has reported it."""
    of_pd = {"name": "pd", "restartCount": restarts, "state": state}
    statuses = [{"name": "sidecar", "state": _RUNS}, *([of_pd] if state is not None else [])]
    body = {"spec": {"nodeName": node}, "status": {"containerStatuses": statuses} | status}
    return msgspec.convert(body, Pod)


def conditions(ready: str, containers: str) -> Json:
    return {
        "conditions": [{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": containers}],
    }


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (pod(_RUNS), Activity.RUNNING),
        (pod(_RUNS, **conditions("False", "False")), Activity.RUNNING),
        (pod(_CRASHES, restarts=3), Activity.STOPPED),
        (pod(_ENDED), Activity.STOPPED),
        (pod(_NO_IMAGE), Activity.NEVER_STARTED),
        (pod(_NO_IMAGE, restarts=1), Activity.STOPPED),
        (pod(None), Activity.NEVER_STARTED),
    ],
)
def test_a_kubelet_of_a_ready_node_is_believed(seen: Pod, expected: Activity) -> None:
    assert expected is activity(seen, "pd", NodeState.READY)


@pytest.mark.parametrize("node", [NodeState.NOT_READY, NodeState.UNKNOWN])
@pytest.mark.parametrize("state", [_RUNS, _CRASHES, _ENDED, _NO_IMAGE, None])
def test_the_state_of_a_pod_on_a_lost_or_unreachable_node_is_unknown(node: NodeState, state: Json | None) -> None:
    assert Activity.UNHEARD is activity(pod(state), "pd", node)


@pytest.mark.parametrize("node", [*NodeState, None])
def test_a_pod_that_was_never_scheduled_has_never_started(node: NodeState | None) -> None:
    assert Activity.NEVER_STARTED is activity(pod(None, node=""), "pd", node)


@pytest.mark.parametrize(
    "status",
    [
        conditions("False", "True"),
        conditions("Unknown", "Unknown"),
        {"phase": "Unknown"},
        {"reason": "NodeLost"},
    ],
)
@pytest.mark.parametrize("node", [NodeState.READY, None])
def test_a_pod_that_the_control_plane_has_marked_is_unheard_of(status: Json, node: NodeState | None) -> None:
    assert Activity.UNHEARD is activity(pod(_RUNS, **status), "pd", node)


def test_without_the_right_to_read_nodes_the_pod_alone_decides() -> None:
    assert Activity.STOPPED is activity(pod(_CRASHES, restarts=3), "pd", None)
