"""Signals, sent to this very process."""

import signal
import threading

import pytest

from controller_manager.shutdown import SIGNALS, stopping_on_signals
from ports.clock import SystemClock
from ports.stopping import Stop
from tests.workqueue.background import DEADLINE


class Exit:
    """Stands for the end of the process."""

    def __init__(self) -> None:
        self.code: int | None = None
        self._called = threading.Event()

    def __call__(self, code: int) -> None:
        self.code = code
        self._called.set()

    def wait(self) -> bool:
        return self._called.wait(DEADLINE)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.rule("CW-10")
def test_a_first_signal_starts_the_orderly_end(number: signal.Signals) -> None:
    stop, exit_ = Stop(), Exit()

    with stopping_on_signals(stop, exit_):
        signal.raise_signal(number)
        assert stop.wait(SystemClock(), DEADLINE)

    assert exit_.code is None


@pytest.mark.rule("CW-10")
def test_a_second_signal_ends_the_process_at_once() -> None:
    stop, exit_ = Stop(), Exit()
    hanging = threading.Event()

    with stopping_on_signals(stop, exit_), stop.calling(lambda: _wait(hanging)):
        signal.raise_signal(signal.SIGTERM)
        assert stop.wait(SystemClock(), DEADLINE)
        signal.raise_signal(signal.SIGINT)
        assert exit_.wait()
        hanging.set()

    assert 1 == exit_.code


def _wait(event: threading.Event) -> None:
    event.wait(DEADLINE)


def test_a_signal_after_a_stop_for_another_reason_is_still_the_first() -> None:
    stop, exit_ = Stop(), Exit()
    stop.set()

    with stopping_on_signals(stop, exit_):
        signal.raise_signal(signal.SIGTERM)

    assert exit_.code is None


def test_handlers_are_restored() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}

    with stopping_on_signals(Stop(), Exit()):
        assert before != {number: signal.getsignal(number) for number in SIGNALS}

    assert before == {number: signal.getsignal(number) for number in SIGNALS}
