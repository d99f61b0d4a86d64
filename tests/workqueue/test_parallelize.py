"""The same work on many pieces at once."""

import threading
from collections import Counter

import pytest

from ports.stopping import Stop
from workqueue.parallelize import parallelize


@pytest.mark.parametrize(("pieces", "workers", "chunk_size"), [(999, 10, 13), (1, 4, 1), (5, 9, 100), (0, 3, 1)])
def test_PAR_1_each_piece_is_worked_on_once(pieces: int, workers: int, chunk_size: int) -> None:
    made: Counter[int] = Counter()
    lock = threading.Lock()

    def count(piece: int) -> None:
        with lock:
            made[piece] += 1

    parallelize(Stop(), workers, pieces, count, chunk_size=chunk_size)

    assert dict.fromkeys(range(pieces), 1) == made


def test_PAR_1_no_more_threads_than_workers_or_chunks() -> None:
    threads: set[str] = set()
    both_here = threading.Barrier(2)

    def meet(_piece: int) -> None:
        threads.add(threading.current_thread().name)
        both_here.wait(5)

    parallelize(Stop(), 2, 8, meet)
    assert 2 == len(threads)

    threads.clear()
    parallelize(Stop(), 10, 8, lambda _: threads.add(threading.current_thread().name), chunk_size=8)
    assert 1 == len(threads)


def test_PAR_1_nothing_is_begun_after_the_stop() -> None:
    stop = Stop()
    made: list[int] = []

    def work(piece: int) -> None:
        made.append(piece)
        if piece == 4:
            stop.set()

    parallelize(stop, 1, 10, work, chunk_size=3)

    assert [0, 1, 2, 3, 4] == made


def test_PAR_1_an_error_is_raised_when_the_others_are_done() -> None:
    made: list[int] = []

    def work(piece: int) -> None:
        if piece in (1, 4):
            raise ValueError(f"piece {piece}")
        made.append(piece)

    with pytest.raises(ValueError, match="piece 1"):
        parallelize(Stop(), 1, 6, work, chunk_size=2)

    assert [0, 2, 3] == made  # 5 was in the chunk of 4
