"""The common parts of the status sync of all members (lifecycle.md 4.7)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kube.objects import Json, Object
from member.observed.status import image_of, is_upgrading, phase, transition_time

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00Z"


def live(asked: int = 3, *, generation: int = 1, **status: Any) -> Json:
    settled = {"replicas": 3, "observedGeneration": 1, "currentRevision": "a", "updateRevision": "a"}
    return {"metadata": {"generation": generation}, "spec": {"replicas": asked}, "status": settled | status}


def pod(revision: str | None = "a", ready: str = "True", **metadata: str) -> Object:
    labels = {"controller-revision-hash": revision} if revision else {}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    meta = {"name": "p", "labels": labels} | metadata
    return Object(msgspec.json.encode({"metadata": meta, "spec": {}, "status": status}))


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
        (live(updateRevision=""), [pod("b")], "before"),
        (live(2, updateRevision=""), [], "before"),
    ],
    ids=["settled", "scaling", "rolling", "unseen", "being scaled", "old pod", "unlabelled pod", "F10", "F10 scale"],
)
@pytest.mark.rule("lifecycle-4.7")
def test_the_phase_of_a_component(stateful_set: Json, pods: list[Object], expected: str) -> None:
    assert expected == phase(3, stateful_set, pods, "before")


@pytest.mark.parametrize("stateful_set", [live(), live(updateRevision="b")])
@pytest.mark.rule("F16", "F20")
def test_an_upgrade_does_not_end_by_itself(stateful_set: Json) -> None:
    assert "Upgrade" == phase(3, stateful_set, [pod()], "Upgrade")


@pytest.mark.rule("F12")
def test_a_terminating_pod_without_a_member_does_not_prolong_an_upgrade() -> None:
    rolling, lost = live(updateRevision="b"), pod("a", name="lost", deletionTimestamp=EARLIER)
    assert not is_upgrading(rolling, [pod("b"), lost], {"lost"})
    assert is_upgrading(rolling, [pod("a"), lost], {"lost"})
    # an existing pod can be restarted
    assert is_upgrading(rolling, [pod("b"), pod("a", name="lost")], {"lost"})


@pytest.mark.rule("lifecycle-7.1")
def test_under_on_delete_the_newest_revision_never_becomes_the_current_one() -> None:
    body = live(updateRevision="b")
    body["spec"]["updateStrategy"] = {"type": "OnDelete"}
    assert not is_upgrading(body, [pod("b")])
    assert is_upgrading(body, [pod("a")])


@pytest.mark.rule("F10")
def test_a_component_begins_as_normal() -> None:
    assert "Normal" == phase(3, live(updateRevision=""), [], "")


@pytest.mark.rule("lifecycle-5")
def test_transition_times_change_with_their_state() -> None:
    class Known:
        last_transition_time = EARLIER

    assert EARLIER == transition_time(Known(), True, NOW)
    assert "2026-01-02T00:00:00Z" == transition_time(Known(), False, NOW) == transition_time(None, True, NOW)


@pytest.mark.rule("lifecycle-5.1")
def test_the_image_of_a_component_comes_from_its_own_container() -> None:
    containers = [{"name": "log", "image": "x"}, {"name": "pd", "image": "y"}]
    stateful_set = {"spec": {"template": {"spec": {"containers": containers}}}}
    assert ("y", "") == (image_of(stateful_set, "pd"), image_of(stateful_set, "tikv"))
