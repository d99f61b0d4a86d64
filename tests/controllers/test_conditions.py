"""Conditions of any kind (lifecycle.md 2.3)."""

from datetime import UTC, datetime

import pytest

from controllers.conditions import done, progressing, with_condition
from kube.objects import Json
from member.outcome import Done, Failed, Outcome, Refused, Waiting

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ({"pd": Done(), "tikv": Done()}, (False, "Done", "the object matches its spec")),
        ({"pd": Waiting("A", "a"), "tikv": Waiting("B", "b")}, (True, "A", "pd: a")),
        ({"pd": Waiting("A", "a"), "tikv": Failed("B", "b")}, (True, "B", "tikv: b")),
        ({"pd": Failed("A", "a"), "tikv": Refused("B", "b")}, (False, "B", "tikv: b")),
        ({"pd": Refused("A", "a"), "tikv": Refused("B", "b")}, (False, "A", "pd: a; tikv: b")),
        ({"pd": Refused("A", "a"), "tikv": Waiting("B", "b"), "tidb": Refused("A", "a")}, (False, "A", "pd: a")),
        ({"discovery": Refused("Paused", "a"), "pd": Refused("Paused", "a")}, (False, "Paused", "a")),
        ({"spec": Refused("InvalidSpec", "a"), "pd": Waiting("B", "b")}, (False, "InvalidSpec", "a; pd: b")),
        ({"spec": Refused("InvalidSpec", "a"), "pd": Refused("B", "b")}, (False, "InvalidSpec", "a; pd: b")),
    ],
)
def test_a_wait_that_needs_the_user_comes_first(outcomes: dict[str, Outcome], expected: tuple[bool, str, str]) -> None:
    assert expected == progressing(outcomes, components=["pd", "tikv", "tidb"])


def test_a_stage_that_no_user_knows_is_not_named() -> None:
    outcomes: dict[str, Outcome] = {
        "pvc_modifier": Refused("A", "a"),
        "dm-master": Refused("B", "b"),
        "clusters": Refused("C", "c"),
    }
    assert (False, "A", "a; dm-master: b; c") == progressing(outcomes, components=["dm-master"])


def test_of_very_many_refusals_the_last_are_counted() -> None:
    refused: dict[str, Outcome] = {f"s{each}": Refused("A", f"m{each}") for each in range(9)}
    message = progressing(refused)[2]
    assert "m0; m1; " == message[:8]
    assert "; m6; and 2 more refusals, in the conditions of components" == message[-58:]


def condition(status: str, reason: str, message: str = "m") -> Json:
    times = {"lastUpdateTime": EARLIER, "lastTransitionTime": EARLIER}
    return {"type": "Ready", "status": status, "reason": reason, "message": message} | times


@pytest.mark.parametrize(
    ("old", "new", "times"),
    [
        (condition("True", "A"), (True, "A", "m"), (EARLIER, EARLIER)),
        (condition("False", "A"), (False, "B", "m"), ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z")),
        (condition("False", "A"), (False, "A", "other"), ("2026-01-02T00:00:00Z", EARLIER)),
        (condition("False", "A"), (True, "A", "m"), ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z")),
    ],
    ids=["same", "reason", "message", "status"],
)
@pytest.mark.rule("lifecycle-2.3")
def test_transition_times_change_with_their_conditions(
    old: Json, new: tuple[bool, str, str], times: tuple[str, str]
) -> None:
    other = {"type": "Other", "status": "True"}
    found = with_condition([other, old], "Ready", new, NOW, update_time=True)
    assert other is found[0]
    assert new == (found[1]["status"] == "True", found[1]["reason"], found[1]["message"])
    assert times == (found[1]["lastUpdateTime"], found[1]["lastTransitionTime"])


def test_without_an_update_time_it_is_a_condition_of_meta_v1() -> None:
    other = {"type": "LeaderEvicting", "status": "True"}
    first = with_condition([other], "Progressing", (True, "A", "a"), NOW.replace(day=1))
    assert [
        other,
        {"type": "Progressing", "status": "True", "reason": "A", "message": "a", "lastTransitionTime": EARLIER},
    ] == first
    assert first == with_condition(first, "Progressing", (True, "A", "a"), NOW)
    for other_value in ((True, "B", "b"), (False, "A", "b")):
        changed = with_condition(first, "Progressing", other_value, NOW)
        assert "2026-01-02T00:00:00Z" == changed[1]["lastTransitionTime"]


def test_a_condition_may_have_only_the_time_of_its_status() -> None:
    first = with_condition([], "Observed", (False, "A", "a"), NOW.replace(day=1), times_status=True)
    changed = with_condition(first, "Observed", (False, "B", "b"), NOW, times_status=True)
    assert ("B", EARLIER) == (changed[0]["reason"], changed[0]["lastTransitionTime"])


def test_an_object_is_ready_once_all_stages_are_done() -> None:
    assert (True, "Ready") == done({"a": Done(), "b": Done("resting", "Paused")})[:2]
    assert (False, "B", "b") == done({"a": Done(), "b": Waiting("B", "b")})
