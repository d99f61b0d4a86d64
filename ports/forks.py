"""Copies of this process, each of which does one piece of work and returns a value.

A copy shares the memory of this process copy-on-write, so that a world with one past can have several futures.
"""

import gc
import os
import pickle
import selectors
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

T = TypeVar("T")

_CHUNK = 1 << 16


class ForkFailed(Exception):
    """Raised if a copy ended without a value, with the stack of its exception if there was one."""


@dataclass(slots=True)
class _Child:
    pid: int
    number: int
    received: bytearray = field(default_factory=bytearray)


class Forks(Generic[T]):
    """At most `jobs` copies at a time. For a process without threads, on a system with fork."""

    def __init__(self, jobs: int = 0) -> None:
        """By default there are as many `jobs` as processors."""
        self._jobs = jobs or os.cpu_count() or 1
        self._selector = selectors.DefaultSelector()
        self._found: dict[int, T | BaseException] = {}
        self._count = 0

    def start(self, work: Callable[[], T]) -> None:
        """Begin a piece of work in a copy of this process as it is now; wait while too many run."""
        self._found.update(self._until(self._jobs - 1))
        reading, writing = os.pipe()
        # buffered output would be written twice
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            # a collection here would copy the memory of all objects that exist now
            gc.freeze()
            _work_and_exit(work, writing)
        os.close(writing)
        self._selector.register(reading, selectors.EVENT_READ, _Child(pid, self._count))
        self._count += 1

    def results(self) -> list[T]:
        """Wait for all copies; their values in the order of their starts. Raises what the first failed one raised."""
        self._found.update(self._until(0))
        self._selector.close()
        for number in range(self._count):
            found = self._found[number]
            if isinstance(found, BaseException):
                raise found
        return [cast(T, self._found[number]) for number in range(self._count)]

    def each(self, works: Iterable[Callable[[], T]]) -> Iterator[tuple[int, T | BaseException]]:
        """The number of each piece of work, from 0, and its value or exception, in the order of the ends."""
        with self._selector:
            for work in works:
                yield from self._until(self._jobs - 1)
                self.start(work)
            yield from self._until(0)

    def _until(self, most: int) -> Iterator[tuple[int, T | BaseException]]:
        """Wait while more than `most` copies run; what those that end meanwhile return or raise."""
        while len(self._selector.get_map()) > most:
            for key, _ in self._selector.select():
                child: _Child = key.data
                chunk = os.read(key.fd, _CHUNK)
                child.received += chunk
                if not chunk:
                    self._selector.unregister(key.fd)
                    os.close(key.fd)
                    os.waitpid(child.pid, 0)
                    yield child.number, self._value(child.received)

    def _value(self, received: bytearray) -> T | BaseException:
        try:
            return cast(T | BaseException, pickle.loads(received))  # noqa: S301  (this program has written it)
        except (EOFError, pickle.UnpicklingError) as error:
            return ForkFailed(f"the process ended without a value: {error}")


def _work_and_exit(work: Callable[[], object], pipe: int) -> None:
    """The whole life of a copy."""
    try:
        try:
            answer = pickle.dumps(work())
        except BaseException as error:
            answer = _portable(error)
        # before the value, so that what a copy prints precedes what is printed about its value
        sys.stdout.flush()
        with os.fdopen(pipe, "wb") as stream:
            stream.write(answer)
    finally:
        os._exit(0)


def _portable(error: BaseException) -> bytes:
    """An exception of this project as it is, if it can be copied; any other as its stack."""
    try:
        answer = pickle.dumps(error)
        pickle.loads(answer)  # noqa: S301  (made above)
    except Exception:
        return pickle.dumps(ForkFailed(traceback.format_exc()))
    return answer
