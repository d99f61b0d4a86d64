"""Which shard a key is in, and which shards this process may act for (docs/adr/0010-shards-by-leases.md).

A shard is to its keys what leadership is to all of them: one Lease, one holder, one fence.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from ports.fencing import Fence, LeaseExpired


@lru_cache(maxsize=65536)
def shard_of(key: str, count: int) -> int:
    """The shard of a key among `count`, from 0, by rendezvous hashing: one shard more takes only what it gets.

    The same in every process and every version.
    """
    return max(range(count), key=lambda shard: hashlib.blake2b(f"{shard}/{key}".encode(), digest_size=8).digest())


class Shards:
    """The shards that this process holds: an `Ownership`. Safe for many threads.

    A shard is opened when its Lease is held, closed before that is given up: then nothing new is begun for its keys,
    and what was begun may end, behind the same fence.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._lock = threading.Lock()
        self._fences: dict[int, Fence] = {}
        self._closed: set[int] = set()
        self._active: Counter[int] = Counter()
        self._acting = threading.local()

    @property
    def held(self) -> frozenset[int]:
        """The shards that are acted for."""
        with self._lock:
            return frozenset(self._fences.keys() - self._closed)

    def open(self, shard: int, fence: Fence) -> None:
        """Act for a shard behind the fence of its Lease."""
        with self._lock:
            self._fences[shard] = fence
            self._closed.discard(shard)

    def close(self, shard: int) -> None:
        """Begin nothing more for a shard."""
        with self._lock:
            self._closed.add(shard)

    def forget(self, shard: int) -> None:
        """Let nothing be written for a shard any more."""
        with self._lock:
            self._fences.pop(shard, None)
            self._closed.discard(shard)

    def is_idle(self, shard: int) -> bool:
        """Whether no thread acts for a key of a shard."""
        with self._lock:
            return not self._active[shard]

    def owns(self, key: str) -> bool:
        """See `Ownership`."""
        shard = shard_of(key, self.count)
        with self._lock:
            return shard in self._fences and shard not in self._closed

    @contextmanager
    def acting_for(self, key: str) -> Iterator[None]:
        """See `Ownership`."""
        shard, before = shard_of(key, self.count), getattr(self._acting, "shard", None)
        with self._lock:
            self._active[shard] += 1
        self._acting.shard = shard
        try:
            yield
        finally:
            self._acting.shard = before
            with self._lock:
                self._active[shard] -= 1

    def check(self) -> None:
        """See `Fence`: for the key that this thread acts for. Raises LeaseExpired, also where it acts for none."""
        shard: int | None = getattr(self._acting, "shard", None)
        if shard is None:
            raise LeaseExpired("this thread acts for no key, so no Lease of a shard allows it to write")
        self._check(shard)

    def fence_of(self, key: str) -> Fence:
        """See `Ownership`."""
        return _FenceOfShard(self, shard_of(key, self.count))

    def _check(self, shard: int) -> None:
        with self._lock:
            fence = self._fences.get(shard)
        if fence is None:
            raise LeaseExpired(f"this process does not hold shard {shard} of {self.count}")
        fence.check()


class _FenceOfShard:
    def __init__(self, shards: Shards, shard: int) -> None:
        self._shards, self._shard = shards, shard

    def check(self) -> None:
        """See `Fence`."""
        self._shards._check(self._shard)
