"""Concurrent calls, in threads and one after another."""

import gc
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from ports.clock import Clock, FakeClock
from ports.side_by_side import InTurn, SideBySide, Threads, both
from tests.workqueue.background import DEADLINE
from workqueue.timers import Timers


class _AllLate:
    """Timers for which every call is due at once."""

    clock: Clock = FakeClock()

    def call_at(self, _: float, call: Callable[[], None]) -> "_AllLate":
        call()
        return self

    def cancel(self) -> None:
        """Too late."""


def _threads(most: int = 32) -> Threads:
    return Threads(_AllLate(), most)


KINDS: list[Callable[[], SideBySide]] = [
    InTurn,
    _threads,
    lambda: _threads(most=1),
    lambda: Threads(Timers(FakeClock())),
]
_MARK: ContextVar[str] = ContextVar("mark", default="")


def _numbered(count: int) -> list[Callable[[], int]]:
    return [lambda number=number: number for number in range(count)]  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_results_come_in_the_order_of_the_calls(kind: Callable[[], SideBySide], count: int) -> None:
    assert list(range(count)) == kind().run(_numbered(count))


@pytest.mark.parametrize("kind", KINDS)
def test_raises_the_first_error_after_all_calls_have_ended(kind: Callable[[], SideBySide]) -> None:
    ended: list[int] = []

    def fail(number: int) -> None:
        ended.append(number)
        raise ValueError(number)

    with pytest.raises(ValueError, match="1"):
        kind().run([lambda: ended.append(0), lambda: fail(1), lambda: fail(2), lambda: ended.append(3)])
    assert [0, 1, 2, 3] == sorted(ended)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_freed_after_it_is_handled(kind: Callable[[], SideBySide]) -> None:
    class Failure(Exception):
        pass

    def fail() -> None:
        raise Failure

    gc.disable()
    try:
        with pytest.raises(Failure) as raised:
            kind().run([fail, fail])
        seen = weakref.ref(raised.value)
        del raised
        assert seen() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", KINDS)
def test_two_calls_have_results_of_two_types(kind: Callable[[], SideBySide]) -> None:
    assert (1, "one") == both(kind(), lambda: 1, lambda: "one")


def test_threads_make_calls_concurrently() -> None:
    met = threading.Barrier(3)
    _threads().run([lambda: met.wait(DEADLINE) for _ in range(3)])


def test_prompt_calls_start_no_thread_and_leave_no_timer() -> None:
    timers = Timers(FakeClock())
    seen = Threads(timers).run([threading.current_thread] * 4)
    assert {threading.current_thread()} == set(seen)
    assert 0 == len(timers)


def test_a_late_call_lets_threads_make_the_others() -> None:
    """The first call ends after all others, like the answer of a slow PD."""
    clock, ended = FakeClock(), threading.Barrier(3)
    timers = Timers(clock)

    def slow() -> str:
        clock.step(0.1)
        timers.fire_due()
        ended.wait(DEADLINE)
        return "slow"

    def prompt() -> str:
        ended.wait(DEADLINE)
        return threading.current_thread().name

    assert ["slow", "side-by-side", "side-by-side"] == Threads(timers).run([slow, prompt, prompt])


def test_no_thread_starts_for_calls_that_have_begun() -> None:
    clock = FakeClock()
    timers = Timers(clock)

    def last() -> int:
        clock.step(0.1)
        timers.fire_due()
        return threading.active_count()

    assert [1, threading.active_count()] == Threads(timers).run([lambda: 1, last])


def test_a_caller_without_threads_makes_the_calls_itself() -> None:
    threads, inner = _threads(most=2), set[str]()

    def call() -> list[None]:
        return threads.run([lambda: inner.add(threading.current_thread().name) for _ in range(3)])

    threads.run([call, call, call])
    assert inner


def test_a_call_sees_the_context_of_its_caller() -> None:
    met = threading.Barrier(2)

    def look() -> str:
        met.wait(DEADLINE)
        return _MARK.get()

    _MARK.set("observing")
    assert ["observing", "observing"] == _threads().run([look, look])


def test_no_thread_outlives_its_calls() -> None:
    before = threading.active_count()
    _threads().run(_numbered(8))
    assert before == threading.active_count()


def test_a_thread_that_failed_to_start_frees_its_place() -> None:
    threads, met = _threads(most=1), threading.Barrier(2)

    def fail() -> None:
        met.wait(DEADLINE)
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            threads.run([fail, fail])
