"""Deletion of everything below a prefix (backup.md 7.8): in batches, with constant memory, resumable.

Nothing is remembered between runs: deleted objects are not listed again, so that a run after kill -9 continues with the
rest.
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
    """The deleted objects and their bytes."""

    objects: int = 0
    bytes: int = 0

    def and_also(self, batch: Sequence[StoredObject]) -> "Deleted":
        """The sum with a further batch."""
        return Deleted(self.objects + len(batch), self.bytes + sum(stored.size for stored in batch))


OnProgress: TypeAlias = Callable[[Deleted], None]
"""Receives the total after each batch, in the calling thread."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace (`spec.cleanOption`): objects per page, concurrent batches, rounds, pauses after failures."""

    page: int = 10_000
    at_once: int = 10
    rounds: int = 5
    pause_on_failure: bool = False


class Interrupted(Exception):
    """Raised if a stop ends the deletion; another run continues it."""


def delete_all(storage: Storage, pace: Pace, clock: Clock, stop: Stop, on_progress: OnProgress) -> Deleted:
    """Delete every object below the prefix, check that none is left, and return the total.

    Raises BadLocation for an empty prefix, which means a whole bucket; StorageError for a permanent error, or one that
    persists for `pace.rounds`; Interrupted.
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
    if all_went and not any(stored.size for page in storage.pages() for stored in page):
        return deletion.done  # folders of a console, which the library does not list
    why = f"the last error was: {deletion.failure}" if deletion.failure else "others put them there meanwhile"
    raise StorageError("delete from", storage.location, f"objects are left after {rounds} rounds; {why}")


def is_empty(storage: Storage) -> bool:
    """True if there is no object below the prefix. Raises StorageError."""
    return not any(storage.pages(1))


@dataclass(slots=True)
class _Deletion:
    """A running deletion: the total, and the last failure."""

    storage: Storage
    pace: Pace
    clock: Clock
    stop: Stop
    on_progress: OnProgress
    done: Deleted = field(default_factory=Deleted)
    failures: int = 0
    failure: StorageError | None = None

    def round(self) -> bool:
        """One pass over a list, with at most `pace.at_once` concurrent batches; True if all objects were deleted."""
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
                    under_way.append((batch, pool.submit(self.storage.delete, [stored.key for stored in batch])))
                pause = pauses.after(failed=self.failures > failures)
                if pause and self.pace.pause_on_failure:
                    self.stop.wait(self.clock, pause)
            while under_way:
                self._settle(under_way.popleft())
        return self.failures == before

    def _pages(self) -> Iterator[Sequence[StoredObject]]:
        """The pages of a list; a list that breaks ends the round, and the next begins with the rest."""
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
        """Keep an error that may pass; raise a permanent one."""
        if not error.may_pass:
            raise error
        self.failures += 1
        self.failure = error


_Batch: TypeAlias = tuple[Sequence[StoredObject], Future[None]]


class _Pauses:
    """The pause after a page: longer after each failure, reset by a success."""

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
