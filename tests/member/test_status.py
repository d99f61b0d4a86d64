"""What all members' status sync has in common (lifecycle.md 4.7)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube.objects import Json, Object
from member.status import image_of, phase, transition_time, with_progress

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00Z"


def live(asked: int = 3, *, generation: int = 1, **status: Any) -> Json:
    settled = {"replicas": 3, "observedGeneration": 1, "currentRevision": "a", "updateRevision": "a"}
    return {"metadata": {"generation": generation}, "spec": {"replicas": asked}, "status": settled | status}


def pod(revision: str | None = "a", ready: str = "True") -> Object:
    labels = {"controller-revision-hash": revision} if revision else {}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return Object(msgspec.json.encode({"metadata": {"name": "p", "labels": labels}, "spec": {}, "status": status}))


@pytest.mark.parametrize(
    ("stateful_set", "pods", "expected"),
    [
        (live(), [pod()], "Normal"),
        (live(2), [pod()], "Scale"),
        (live(updateRevision="b"), [pod()], "Upgrade"),
        (live(generation=2), [pod()], "Upgrade"),
        (live(generation=2, replicas=2), [pod()], "Normal"),
        (live(), [pod(), pod("b")], "Upgrade"),
        (live(), [pod(None), pod("b")], "Normal"),
        (live(updateRevision=""), [pod("b")], "Suspend"),
        (live(2, updateRevision=""), [], "Suspend"),
    ],
    ids=["settled", "scaling", "rolling", "unseen", "being scaled", "old pod", "unlabelled pod", "F10", "F10 scale"],
)
def test_4_7_the_phase_of_a_component(stateful_set: Json, pods: list[Object], expected: str) -> None:
    assert expected == phase(3, stateful_set, pods, "Suspend")


def test_F10_a_component_begins_as_normal() -> None:
    assert "Normal" == phase(3, live(updateRevision=""), [], "")


def test_5_times_move_when_what_they_date_moves() -> None:
    class Known:
        last_transition_time = EARLIER

    assert EARLIER == transition_time(Known(), True, NOW)
    assert "2026-01-02T00:00:00Z" == transition_time(Known(), False, NOW) == transition_time(None, True, NOW)


def test_progressing_of_a_component_is_a_condition_of_meta_v1() -> None:
    other = {"type": "LeaderEvicting", "status": "True"}
    first = with_progress([other], True, "A", "a", NOW.replace(day=1))
    assert [
        other,
        {"type": "Progressing", "status": "True", "reason": "A", "message": "a", "lastTransitionTime": EARLIER},
    ] == first
    assert first == with_progress(first, True, "A", "a", NOW)
    assert EARLIER == with_progress(first, True, "B", "b", NOW)[1]["lastTransitionTime"]
    assert "2026-01-02T00:00:00Z" == with_progress(first, False, "B", "b", NOW)[1]["lastTransitionTime"]


def test_5_1_the_image_is_that_of_the_components_container() -> None:
    containers = [{"name": "log", "image": "x"}, {"name": "pd", "image": "y"}]
    stateful_set = {"spec": {"template": {"spec": {"containers": containers}}}}
    assert ("y", "") == (image_of(stateful_set, "pd"), image_of(stateful_set, "tikv"))
