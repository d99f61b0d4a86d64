import contextlib
import subprocess
import sys
import threading
from asyncio import CancelledError
from functools import partial

import pytest
from structlog.testing import capture_logs

from ports.clock import FakeClock
from ports.stopping import Stop


@pytest.mark.rule("TH-11")
def test_the_flag_is_set_before_the_callbacks_run() -> None:
    stop = Stop()
    seen: list[bool] = []
    with stop.calling(lambda: seen.append(stop.is_set())):
        stop.set()
        stop.set()

    assert [True] == seen


def test_a_callback_runs_immediately_if_set_and_never_after_its_block(clock: FakeClock) -> None:
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


@pytest.mark.parametrize("in_main", [True, False])
def test_a_callback_that_raises_does_not_skip_the_others(in_main: bool) -> None:
    stop = Stop()
    seen: list[str] = []

    def fail(error: BaseException) -> None:
        raise error

    with contextlib.ExitStack() as stack:
        for error in (ValueError("no"), SystemExit(3), CancelledError()):
            stack.enter_context(stop.calling(partial(fail, error)))
            stack.enter_context(stop.calling(lambda: seen.append("called")))
        with capture_logs() as logs:
            if in_main:
                stop.set()
            else:
                thread = threading.Thread(target=stop.set)
                thread.start()
                thread.join()

    assert ["called"] * 3 == seen
    assert ["callback failed"] * 3 == [entry["event"] for entry in logs]


_PROGRAM = """
import contextlib, signal, sys, threading
from ports.clock import SystemClock
from ports.stopping import Stop

class Interrupted(SystemClock):
    # the signal comes between the last look at the flag and the wait
    def wait(self, condition, timeout):
        signal.raise_signal(signal.SIGTERM)
        super().wait(condition, timeout)

lock, stop, called = threading.Lock(), Stop(), threading.Event()

def callback():
    with lock:
        called.set()

{handler}
with stop.calling(callback):
    {interrupted}
    assert stop.is_set() and called.wait(5)
print("ended")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "handler",
    ["signal.signal(signal.SIGTERM, stop.set)", "signal.signal(signal.SIGTERM, lambda *_: stop.set())"],
)
@pytest.mark.parametrize(
    "interrupted",
    ["stop.wait(Interrupted())", "with lock: signal.raise_signal(signal.SIGTERM)", "stop.wait(SystemClock(), 1e-9)"],
)
@pytest.mark.rule("TH-16")
def test_a_signal_handler_may_set_a_stop_at_any_point(handler: str, interrupted: str) -> None:
    if "1e-9" in interrupted:
        # another signal every 50 microseconds hits the wait at any point
        handler += "; signal.setitimer(signal.ITIMER_REAL, 5e-5)"
        handler = handler.replace("SIGTERM", "SIGALRM")
        interrupted = "while not stop.is_set(): stop.wait(SystemClock(), 1e-9)"
    program = _PROGRAM.format(handler=handler, interrupted=interrupted)

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)

    assert ("ended\n", "", 0) == (ended.stdout, ended.stderr, ended.returncode)
