"""A status that comes and goes costs few writes (I29)."""

from controllers.status_flaps import APART, EVERY, LATELY, OFTEN, StatusFlaps
from kube.objects import Json
from ports.clock import FakeClock

UP: Json = {"conditions": [{"type": "Ready", "status": "True", "message": "", "lastTransitionTime": "1"}]}
DOWN: Json = {"conditions": [{"type": "Ready", "status": "False", "message": "a pod", "lastTransitionTime": "2"}]}


def _flapping(clock: FakeClock) -> StatusFlaps:
    """After as many returns as are often; it is down."""
    flaps = StatusFlaps(clock)
    for each in (UP, DOWN, UP, DOWN, UP)[-OFTEN - 2 :]:
        clock.step(APART)
        assert 0 == flaps.pause(each)
        flaps.wrote(each)
    return flaps


def test_I29_what_comes_and_goes_is_written_now_and_then() -> None:
    clock = FakeClock()
    flaps = _flapping(clock)
    assert EVERY == flaps.pause(DOWN)
    clock.step(EVERY - 5)
    assert 5 == flaps.pause(DOWN)
    clock.step(5)
    assert 0 == flaps.pause(DOWN)


def test_I29_what_happens_within_seconds_is_no_coming_and_going() -> None:
    flaps = StatusFlaps(FakeClock())
    for each in (UP, DOWN) * 10:
        assert 0 == flaps.pause(each)
        flaps.wrote(each)


def test_I29_what_is_new_is_written_at_once() -> None:
    flaps = _flapping(FakeClock())
    assert 0 == flaps.pause(DOWN | {"pd": {"phase": "Upgrade"}})


def test_I29_another_sentence_is_no_return() -> None:
    flaps = StatusFlaps(FakeClock())
    for left in range(100):
        status: Json = {"conditions": [UP["conditions"][0] | {"message": f"{left} regions left"}]}
        assert 0 == flaps.pause(status)
        flaps.wrote(status)


def test_I29_what_has_been_steady_for_long_may_change() -> None:
    clock = FakeClock()
    flaps = _flapping(clock)
    clock.step(LATELY)
    assert 0 == flaps.pause(DOWN)


def test_I29_a_flapping_node_costs_three_writes_a_minute() -> None:
    clock = FakeClock()
    flaps = _flapping(clock)
    writes = 0
    for second in range(600):
        clock.step(1)
        now = UP if second % 20 < 10 else DOWN
        if second % 10 == 0 and flaps.pause(now) == 0:
            flaps.wrote(now)
            writes += 1
    assert 30 >= writes
