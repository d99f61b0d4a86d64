"""The shard of a key, and the shards that this process acts for (docs/adr/0010-shards-by-leases.md).

A shard is to its keys what leadership is to all keys: one Lease, one holder, one fence.
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
    """The shard of a key among `count`, counted from 0, by rendezvous hashing: an added shard takes only its own share.

    The same in every process and every version.
    """
    return max(range(count), key=lambda shard: hashlib.blake2b(f"{shard}/{key}".encode(), digest_size=8).digest())


class Shards:
    """The shards that this process holds: an `Ownership`. Thread-safe.

    A shard is opened once its Lease is held and closed before the Lease is released. After closing, no new work starts
    for its keys; running work may finish behind the same fence.
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
        """The shards that this process acts for."""
        with self._lock:
            return frozenset(self._fences.keys() - self._closed)

    def open(self, shard: int, fence: Fence) -> None:
        """Act for a shard, behind the fence of its Lease."""
        with self._lock:
            self._fences[shard] = fence
            self._closed.discard(shard)

    def close(self, shard: int) -> None:
        """Start no more work for a shard."""
        with self._lock:
            self._closed.add(shard)

    def forget(self, shard: int) -> None:
        """Forbid all further writes for a shard."""
        with self._lock:
            self._fences.pop(shard, None)
            self._closed.discard(shard)

    def is_idle(self, shard: int) -> bool:
        """True if no thread acts for a key of the shard."""
        with self._lock:
            return not self._active[shard]

    def owns(self, key: str) -> bool:
        shard = shard_of(key, self.count)
        with self._lock:
            return shard in self._fences and shard not in self._closed

    @contextmanager
    def acting_for(self, key: str) -> Iterator[None]:
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
        """Check the fence of the key that this thread acts for. Raises LeaseExpired, also if it acts for none."""
        shard: int | None = getattr(self._acting, "shard", None)
        if shard is None:
            raise LeaseExpired("this thread acts for no key, so no Lease of a shard allows it to write")
        self._check(shard)

    def fence_of(self, key: str) -> Fence:
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
        self._shards._check(self._shard)
