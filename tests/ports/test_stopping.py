from ports.clock import FakeClock
from ports.stopping import Stop


def test_TH_11_the_flag_is_set_before_the_callbacks_run() -> None:
    stop = Stop()
    seen: list[bool] = []
    with stop.calling(lambda: seen.append(stop.is_set())):
        stop.set()
        stop.set()

    assert [True] == seen


def test_a_callback_runs_at_once_when_the_stop_is_set_and_never_after_its_block(clock: FakeClock) -> None:
    stop = Stop()
    seen: list[str] = []
    with stop.calling(lambda: seen.append("over")):
        pass
    stop.set()
    with stop.calling(lambda: seen.append("at once")):
        pass

    assert ["at once"] == seen
    assert stop.wait(clock)
    assert not Stop().wait(clock, 0)
