"""Deleting everything below a prefix (backup.md 7.8): in batches, with flat memory, and from where it was ended.

Nothing is remembered between runs: what is gone is not listed again, so a run after kill -9 goes on with what is left.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

from backup_manager.storage.errors import BadLocation, StorageError
from backup_manager.storage.objects import Storage, StoredObject
from ports.clock import Clock
from ports.stopping import Stop

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Deleted:
    """What is gone: objects, and their bytes."""

    objects: int = 0
    bytes: int = 0

    def and_also(self, batch: Sequence[StoredObject]) -> "Deleted":
        """With a batch more."""
        return Deleted(self.objects + len(batch), self.bytes + sum(each.size for each in batch))


OnProgress: TypeAlias = Callable[[Deleted], None]
"""Is told after each batch what is gone by now; by the thread that called."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How hard to try (`spec.cleanOption`): objects a page, batches at once, rounds, pauses where some fail."""

    page: int = 10_000
    at_once: int = 10
    rounds: int = 5
    pause_on_failure: bool = False


class Interrupted(Exception):
    """Raised when a stop ends the deletion; another run goes on with it."""


def delete_all(storage: Storage, pace: Pace, clock: Clock, stop: Stop, on_progress: OnProgress) -> Deleted:
    """Delete every object below the prefix, and see that none is left; return what went.

    Raises BadLocation for an empty prefix, which means a whole bucket; StorageError for what will not pass, or did not
    within `pace.rounds`; Interrupted.
    """
    if not storage.location.prefix:
        why = f"the prefix is empty, which means everything in the bucket; set {storage.location.field}.prefix"
        raise BadLocation("delete from", storage.location, why)
    deletion = _Deletion(storage, pace, clock, stop, on_progress)
    rounds, all_went = max(pace.rounds, 1), False
    for _ in range(rounds):
        all_went = deletion.round()
        if all_went and is_empty(storage):
            return deletion.done
    if all_went and not any(each.size for page in storage.pages() for each in page):
        return deletion.done  # folders that a console has made, whose names the library does not know
    why = f"the last error was: {deletion.failure}" if deletion.failure else "others put them there meanwhile"
    raise StorageError("delete from", storage.location, f"objects are left after {rounds} rounds; {why}")


def is_empty(storage: Storage) -> bool:
    """Whether there is no object below the prefix. Raises StorageError."""
    return not any(storage.pages(1))


@dataclass(slots=True)
class _Deletion:
    """A deletion under way: what is gone, and what failed last."""

    storage: Storage
    pace: Pace
    clock: Clock
    stop: Stop
    on_progress: OnProgress
    done: Deleted = field(default_factory=Deleted)
    failures: int = 0
    failure: StorageError | None = None

    def round(self) -> bool:
        """One pass over what a list brings, with at most `pace.at_once` batches under way; whether all went."""
        before = self.failures
        under_way: deque[_Batch] = deque()
        pauses = _Pauses()
        with ThreadPoolExecutor(self.pace.at_once, thread_name_prefix="delete") as pool:
            for page in self._pages():
                failures = self.failures
                for batch in _batches(page, self.storage.batch):
                    if self.stop.is_set():
                        raise Interrupted
                    while len(under_way) >= self.pace.at_once:
                        self._settle(under_way.popleft())
                    under_way.append((batch, pool.submit(self.storage.delete, [each.key for each in batch])))
                pause = pauses.after(failed=self.failures > failures)
                if pause and self.pace.pause_on_failure:
                    self.stop.wait(self.clock, pause)
            while under_way:
                self._settle(under_way.popleft())
        return self.failures == before

    def _pages(self) -> Iterator[Sequence[StoredObject]]:
        """What there is; a list that breaks off ends the round, and the next begins with what is left."""
        try:
            yield from self.storage.pages(self.pace.page)
        except StorageError as error:
            self._failed(error)

    def _settle(self, under_way: "_Batch") -> None:
        batch, future = under_way
        try:
            future.result()
        except StorageError as error:
            self._failed(error)
            return
        self.done = self.done.and_also(batch)
        self.on_progress(self.done)

    def _failed(self, error: StorageError) -> None:
        """Keep an error that may pass; raise one that will not."""
        if not error.may_pass:
            raise error
        self.failures += 1
        self.failure = error


_Batch: TypeAlias = tuple[Sequence[StoredObject], Future[None]]


class _Pauses:
    """How long to wait after a page: longer each time, from the beginning after one that went."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    def after(self, *, failed: bool) -> float:
        """Seconds; 0 after a page without failures."""
        if not failed:
            self._next = _FIRST_PAUSE
            return 0.0
        pause, self._next = self._next, min(self._next * 2, _LONGEST_PAUSE)
        return pause


def _batches(page: Sequence[StoredObject], size: int) -> Iterator[Sequence[StoredObject]]:
    for start in range(0, len(page), size):
        yield page[start : start + size]
