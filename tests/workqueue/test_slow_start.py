import threading

import pytest

from ports.stopping import Stop
from workqueue.slow_start import slow_start


def test_EXP_4_batches_double() -> None:
    seen: list[int] = []
    barriers = {size: threading.Barrier(size, timeout=5) for size in (1, 2, 4)}

    def call(piece: int) -> None:
        size = 1 if piece < 1 else 2 if piece < 3 else 4
        barriers[size].wait()
        seen.append(piece)

    slow_start(Stop(), 7, call)
    assert [{0}, {1, 2}, {3, 4, 5, 6}] == [set(seen[:1]), set(seen[1:3]), set(seen[3:])]


def test_EXP_4_a_batch_with_an_error_is_the_last() -> None:
    seen: list[int] = []

    def call(piece: int) -> None:
        seen.append(piece)
        if piece == 4:
            raise ValueError("over the quota")

    with pytest.raises(ValueError, match="quota"):
        slow_start(Stop(), 100, call)
    assert list(range(7)) == sorted(seen)


def test_EXP_4_a_stop_ends_it_between_two_batches() -> None:
    seen: list[int] = []
    stop = Stop()

    def call(piece: int) -> None:
        seen.append(piece)
        stop.set()

    slow_start(stop, 100, call)
    assert [0] == seen
