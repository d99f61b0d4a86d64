"""The same work on many pieces at once (informers-workqueue.md PAR-1)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ports.stopping import Stop


def parallelize(stop: Stop, workers: int, pieces: int, call: Callable[[int], object], *, chunk_size: int = 1) -> None:
    """Make `call(piece)` once for each of 0 .. pieces-1, with at most `workers` threads; return when all are done.

    Threads take `chunk_size` pieces in a row. Pieces not begun when `stop` is set are left out. WHEN a call raises
    THEN the rest of its chunk is left out, and the first error, by piece, is raised after everything else is done.
    """
    if pieces <= 0:
        return

    def work(start: int) -> None:
        for piece in range(start, min(start + chunk_size, pieces)):
            if stop.is_set():
                return
            call(piece)

    starts = range(0, pieces, chunk_size)
    with ThreadPoolExecutor(min(workers, len(starts)), thread_name_prefix="parallelize") as pool:
        chunks = [pool.submit(work, start) for start in starts]
    for chunk in chunks:
        chunk.result()
