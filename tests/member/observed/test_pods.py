"""Ready pods, and the reasons why others are not Ready."""

import msgspec
import pytest

from kube.objects import Json, Object
from member.observed.pod import Pod
from member.observed.pods import ready_pods

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}


def pod(**status: object) -> Object:
    return Object(msgspec.json.encode({"metadata": {"name": "p"}, "spec": {}, "status": status}))


def container(reason: str) -> Json:
    return {"name": "pd", "state": {"waiting": {"reason": reason, "message": "a secret of the image's registry"}}}


def test_only_pods_with_a_true_ready_condition_are_ready() -> None:
    ready = pod(conditions=[{"type": "Ready", "status": "True"}])
    not_ready = pod(conditions=[{"type": "Ready", "status": "False"}])
    assert [ready] == ready_pods([not_ready, ready, pod()])


@pytest.mark.parametrize(
    ("status", "trouble"),
    [
        ({}, ""),
        ({"containerStatuses": [container("ContainerCreating")]}, ""),
        ({"containerStatuses": [{"name": "pd", "state": {"running": {}}}]}, ""),
        ({"conditions": [UNSCHEDULABLE]}, "Unschedulable: 0/3 nodes fit"),
        ({"containerStatuses": [container("ImagePullBackOff")]}, "container pd: ImagePullBackOff"),
    ],
    ids=["new", "on the way", "running", "no place", "no image"],
)
def test_reports_why_a_pod_cannot_start_in_the_words_of_kubernetes(status: Json, trouble: str) -> None:
    assert trouble == pod(**status).decode_as(Pod).trouble


def restarted(since: str, state: Json) -> Json:
    """A pod whose container was killed twice, and that is not Ready since then."""
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    container = {"name": "pd", "restartCount": 2, "state": state, "lastState": ended}
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": since}
    return {"containerStatuses": [container], "conditions": [ready]}


@pytest.mark.parametrize(
    ("since", "state", "crashes"),
    [
        ("2026-01-01T10:00:00Z", {"running": {"startedAt": "2026-01-01T10:00:10Z"}}, True),
        ("2026-01-01T10:00:00Z", {"running": {"startedAt": "2026-01-01T10:00:00Z"}}, True),
        ("2026-03-01T10:00:00Z", {"running": {"startedAt": "2026-01-01T10:00:10Z"}}, False),
        ("2026-03-01T10:00:00Z", {"waiting": {"reason": "CrashLoopBackOff"}}, True),
    ],
    ids=["it ended and runs again", "in the same second", "it has run on for months", "it waits"],
)
def test_ends_are_why_a_pod_is_not_ready_unless_the_container_ran_on_when_that_began(
    since: str, state: Json, *, crashes: bool
) -> None:
    seen = pod(**restarted(since, state)).decode_as(Pod)
    assert crashes == seen.is_crash_looping
    assert ("container pd: CrashLoopBackOff: OOMKilled, exit code 137" if crashes else "") == seen.crashes
