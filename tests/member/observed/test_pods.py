"""What keeps a pod from being Ready, and which are."""

import msgspec
import pytest

from kube.objects import Json, Object
from member.observed.pods import Pod, ready_pods

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}


def pod(**status: object) -> Object:
    return Object(msgspec.json.encode({"metadata": {"name": "p"}, "spec": {}, "status": status}))


def container(reason: str) -> Json:
    return {"name": "pd", "state": {"waiting": {"reason": reason, "message": "a secret of the image's registry"}}}


def test_only_pods_that_say_so_are_ready() -> None:
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
def test_what_keeps_a_pod_from_starting_is_told_in_kubernetes_words(status: Json, trouble: str) -> None:
    assert trouble == pod(**status).decode_as(Pod).trouble
