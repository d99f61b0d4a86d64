"""Own writes in front of a cache that does not show them yet (informers-workqueue.md MUT-3)."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from informers.versions import as_number
from kube.objects import Object
from ports.clock import Clock

_SIZE = 100


class MutationCache:
    """Reads a cache and the own writes, and answers with what is newer. Safe for threads.

    Keeps the last 100 writes for `ttl` seconds each, and drops one as soon as the cache has caught up with it.
    """

    def __init__(
        self, cached: Callable[[str], Object | None], clock: Clock, ttl: float, *, include_adds: bool = False
    ) -> None:
        """`cached` reads the cache by key. With `include_adds` an object it does not hold yet is found, too."""
        self._cached = cached
        self._clock = clock
        self._ttl = ttl
        self._include_adds = include_adds
        self._lock = threading.Lock()
        self._written: OrderedDict[str, tuple[Object, float]] = OrderedDict()

    def mutated(self, written: Object) -> None:
        """Note what a write answered."""
        with self._lock:
            self._written[written.key] = written, self._clock.now() + self._ttl
            self._written.move_to_end(written.key)
            if len(self._written) > _SIZE:
                self._written.popitem(last=False)

    def get(self, key: str) -> Object | None:
        """The newest state known of an object, or None."""
        cached = self._cached(key)
        with self._lock:
            written, expires_at = self._written.get(key, (None, 0.0))
            if written is None:
                return cached
            if self._clock.now() >= expires_at or (cached and not _is_newer(written, cached)):
                del self._written[key]
                return cached
            self._written.move_to_end(key)
            return written if cached or self._include_adds else None


def _is_newer(written: Object, cached: Object) -> bool:
    """Whether both versions are numbers and the first is greater."""
    ours, theirs = as_number(written.metadata.resource_version), as_number(cached.metadata.resource_version)
    return ours is not None and theirs is not None and ours > theirs
