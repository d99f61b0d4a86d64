"""Doing many things that may all fail for one reason (informers-workqueue.md EXP-4)."""

from collections.abc import Callable

from ports.stopping import Stop
from workqueue.parallelize import parallelize


def slow_start(stop: Stop, pieces: int, call: Callable[[int], object], initial: int = 1) -> None:
    """Make `call(piece)` once for each of 0 .. pieces-1, in batches that double, side by side within a batch.

    What is bound to fail, such as creations over a quota, is tried once or twice instead of a thousand times: a batch
    with an error is the last, and its first error, by piece, is raised when the batch is done.
    """
    done, batch = 0, initial
    while done < pieces and not stop.is_set():
        size = min(batch, pieces - done)
        _batch(stop, done, size, call)
        done, batch = done + size, batch * 2


def _batch(stop: Stop, first: int, size: int, call: Callable[[int], object]) -> None:
    parallelize(stop, size, size, lambda piece: call(first + piece))
