"""A flapping status costs few writes (I29)."""

from collections.abc import Sequence

import pytest

from controllers.status_fields import STATUS_FIELDS
from controllers.status_pacing import AT_FIRST, DETAILS, EVERY, LATELY, OFTEN, StatusPacing, tells_reconciles
from kube.objects import Json
from ports.clock import FakeClock
from ports.randomness import SeededRandomness

UP: Json = {
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "1"},
        {"type": "Progressing", "status": "True", "reason": "Upgrading", "message": "a pod", "lastTransitionTime": "1"},
    ]
}
DOWN: Json = {
    "conditions": [
        {"type": "Ready", "status": "False", "reason": "Down", "message": "a pod", "lastTransitionTime": "2"},
        {"type": "Progressing", "status": "True", "reason": "Upgrading", "message": "a pod", "lastTransitionTime": "1"},
    ]
}


def _flapping(clock: FakeClock) -> StatusPacing:
    """After as many returns as are often; it is down."""
    flaps = StatusPacing(clock, STATUS_FIELDS)
    for each in (UP, DOWN, UP, DOWN, UP)[-OFTEN - 2 :]:
        clock.step(AT_FIRST)
        assert 0 == flaps.pause({}, each)
        flaps.wrote({}, each)
    return flaps


@pytest.mark.rule("I29")
def test_a_flapping_status_is_written_occasionally() -> None:
    clock = FakeClock()
    flaps = _flapping(clock)
    assert EVERY == flaps.pause(UP, DOWN)
    clock.step(EVERY - 5)
    assert 5 == flaps.pause(UP, DOWN)
    clock.step(5)
    assert 0 == flaps.pause(UP, DOWN)


@pytest.mark.rule("I29")
def test_changes_within_seconds_are_no_flapping() -> None:
    flaps = StatusPacing(FakeClock(), STATUS_FIELDS)
    for each in (UP, DOWN) * 4:
        assert 0 == flaps.pause({}, each)
        flaps.wrote({}, each)


@pytest.mark.rule("I29")
def test_a_status_that_changes_at_each_request_is_written_occasionally_within_the_same_second() -> None:
    """Each write of a status lets the operator reconcile again, and ask a server whose answers change each time."""
    flaps, written = StatusPacing(FakeClock(), STATUS_FIELDS), 0
    for each in (UP, DOWN) * 50:
        if not flaps.pause({}, each):
            flaps.wrote({}, each)
            written += 1
    assert 8 <= written <= 14


@pytest.mark.rule("I29")
def test_a_new_step_of_an_operation_is_written_at_once() -> None:
    flaps = _flapping(FakeClock())
    upgrading: Json = DOWN | {"pd": {"phase": "Upgrade"}}
    assert 0 == flaps.pause(UP, upgrading)
    flaps.wrote(UP, upgrading)
    assert 0 == flaps.pause(upgrading, upgrading | {"tikv": {"stores": {"1": {"leaderCountBeforeUpgrade": 3}}}})
    assert EVERY == flaps.pause(upgrading, UP)


@pytest.mark.parametrize(("component", "records"), [("pd", "failureMembers"), ("tikv", "failureStores")])
@pytest.mark.rule("I29")
def test_a_record_of_failover_is_written_at_once(component: str, records: str) -> None:
    flaps = _flapping(FakeClock())
    failed: Json = DOWN | {component: {records: {"1": {"podName": "basic-1"}}}}
    assert 0 == flaps.pause(DOWN, failed)
    flaps.wrote(DOWN, failed)
    assert 0 == flaps.pause(failed, DOWN)


@pytest.mark.rule("I29")
def test_a_loss_shows_within_a_distance_while_others_come_and_go() -> None:
    flaps = _flapping(FakeClock())
    lost: Json = {"tikv": {"stores": {"1": {"state": "Down"}}}}
    assert 0 < flaps.pause(UP, DOWN | lost) <= EVERY


@pytest.mark.rule("I29")
def test_a_different_message_is_no_return() -> None:
    flaps = StatusPacing(FakeClock(), STATUS_FIELDS)
    for left in range(100):
        status: Json = {"conditions": [UP["conditions"][0] | {"message": f"{left} regions left"}]}
        assert 0 == flaps.pause({}, status)
        flaps.wrote({}, status)


@pytest.mark.rule("I29")
def test_a_status_that_was_steady_for_long_may_change() -> None:
    clock = FakeClock()
    flaps = _flapping(clock)
    clock.step(LATELY)
    assert 0 == flaps.pause(UP, DOWN)


@pytest.mark.rule("I29")
def test_a_flapping_node_costs_three_writes_a_minute() -> None:
    clock = FakeClock()
    flaps = _flapping(clock)
    writes = 0
    for second in range(600):
        clock.step(1)
        now = UP if second % 20 < 10 else DOWN
        if second % 10 == 0 and flaps.pause({}, now) == 0:
            flaps.wrote({}, now)
            writes += 1
    assert 30 >= writes


@pytest.mark.parametrize("components", [1, 2, 4])
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.rule("I29")
def test_flapping_in_any_rhythm_costs_three_writes_a_minute(components: int, seed: int) -> None:
    clock, draw = FakeClock(), SeededRandomness(seed)
    pacing, stored = StatusPacing(clock, STATUS_FIELDS), UP
    periods = [draw.integer(5, 120) for _ in range(components)]
    began, written, unwritten_since = clock.now(), list[float](), None
    for _ in range(1500):
        clock.step(1)
        elapsed = clock.now() - began
        is_up = {f"basic-tikv-{number}": elapsed % each < each / 2 for number, each in enumerate(periods)}
        status: Json = (UP if all(is_up.values()) else DOWN) | {"tikv": {"servers": is_up}}
        if status == stored:
            unwritten_since = None
        elif pacing.pause(stored, status):
            unwritten_since = unwritten_since or clock.now()
            assert clock.now() - unwritten_since <= AT_FIRST
        else:
            pacing.wrote(stored, status)
            stored, unwritten_since = status, None
            written.append(elapsed)
    assert _most_in_a_minute([at for at in written if at > LATELY]) <= 3


def _most_in_a_minute(times: Sequence[float]) -> int:
    return max((sum(at <= other < at + 60 for other in times) for at in times), default=0)


@pytest.mark.parametrize("period", range(12, 120, 4))
@pytest.mark.rule("I29")
def test_one_flapping_node_costs_three_writes_from_the_first_minute_on(period: int) -> None:
    clock = FakeClock()
    pacing, stored, written = StatusPacing(clock, STATUS_FIELDS), UP, list[float]()
    pacing.wrote({}, UP)
    for second in range(600):
        clock.step(1)
        status = DOWN if second % period < period / 2 else UP
        if status != stored and not pacing.pause(stored, status):
            pacing.wrote(stored, status)
            stored = status
            written.append(clock.now())
    assert 3 >= _most_in_a_minute(written)


@pytest.mark.parametrize(
    "detail",
    [
        {"tikv": {"stores": {"1": {"leaderCount": 3}}}},
        {"tikv": {"phase": "Normal"}},
        {"pd": {"statefulSet": {"replicas": 3}}},
        {"conditions": [UP["conditions"][0], UP["conditions"][1] | {"reason": "Scaling", "message": "another pod"}]},
    ],
)
def test_a_detail_waits_for_the_next_write_or_a_while(detail: Json) -> None:
    clock = FakeClock()
    pacing = StatusPacing(clock, STATUS_FIELDS)
    assert DETAILS.first == pacing.pause(UP, UP | detail)
    clock.step(DETAILS.first)
    assert 0 == pacing.pause(UP, UP | detail)
    pacing.wrote(UP, UP | detail)
    clock.step(0.5)
    assert DETAILS.first - 0.5 == pacing.pause(UP, UP | detail)
    clock.step(DETAILS.first)
    assert 0 == pacing.pause(UP, UP | detail)


def test_after_a_quiet_time_some_details_show_at_once() -> None:
    clock = FakeClock()
    pacing = StatusPacing(clock, STATUS_FIELDS)
    clock.step(DETAILS.at_once * DETAILS.first)
    pauses = []
    for leaders in range(32):
        detail = {"tikv": {"stores": {"1": {"leaderCount": leaders}}}}
        pauses.append(pacing.pause(UP, UP | detail))
        if not pauses[-1]:
            pacing.wrote(UP, UP | detail)
    assert [*[0.0] * 30, DETAILS.first, DETAILS.first] == pauses


@pytest.mark.parametrize(
    "news",
    [
        DOWN,
        {"tikv": {"phase": "Upgrade"}},
        {"clusterID": "7"},
        {"pd": {"failureMembers": {"basic-pd-0": {"podName": "basic-pd-0"}}}},
        {"pd": {"unjoinedMembers": {"basic-pd-0": {"podName": "basic-pd-0"}}}},
        {"conditions": [UP["conditions"][0], UP["conditions"][1] | {"status": "False", "reason": "Done"}]},
    ],
)
def test_important_changes_are_written_at_once(news: Json) -> None:
    pacing = StatusPacing(FakeClock(), STATUS_FIELDS)
    pacing.wrote(UP, UP | {"pd": {"statefulSet": {}}})
    assert 0 == pacing.pause(UP, UP | news)
    assert 0 == pacing.pause(UP | news, UP)


def test_a_status_that_alternates_lets_the_next_reconcile_wait() -> None:
    pacing, waits, stored = StatusPacing(FakeClock(), STATUS_FIELDS), list[bool](), dict[str, object]()
    for status in (UP, DOWN, UP, DOWN, UP):
        waits.append(pacing.wrote(stored, status))
        stored = status
    assert [False, False, False, True, True] == waits
    assert not pacing.wrote(stored, UP | {"tikv": {"phase": "Upgrade"}})


_STORE: Json = {"state": "Up", "lastTransitionTime": "1", "podName": "basic-tikv-0"}


@pytest.mark.parametrize(
    ("changed", "is_news"),
    [
        ({"state": "Disconnected", "lastTransitionTime": "2"}, False),
        ({"leaderCount": 3}, False),
        ({"leaderCountBeforeUpgrade": 3}, True),
        ({"state": "Disconnected", "lastTransitionTime": "2", "leaderCountBeforeUpgrade": 3}, True),
    ],
    ids=["state", "detail", "step", "state and step"],
)
def test_the_state_of_a_store_is_no_news_to_the_next_reconcile(changed: Json, is_news: bool) -> None:
    stored, status = ({"tikv": {"stores": {"1": store}}} for store in (_STORE, _STORE | changed))
    assert is_news is tells_reconciles(stored, status, STATUS_FIELDS)


def test_a_new_state_of_a_store_is_written_at_once() -> None:
    stored, status = ({"tikv": {"stores": {"1": _STORE | {"state": state}}}} for state in ("Up", "Disconnected"))
    assert 0 == StatusPacing(FakeClock(), STATUS_FIELDS).pause(stored, status)
