"""The records of DM's masters in their etcd: workers, leases, sources, and bindings."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from sandbox.dataplane.pd.etcd import Etcd

_WORKER = b"/dm-worker/r/"
_ALIVE = b"/dm-worker/a/"
_SOURCE = b"/dm-master/upstream/config/"
_BOUND = b"/dm-master/bound-worker/"


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as the masters see it: free, bound or offline."""

    name: str
    address: str
    stage: str
    source: str


class Book:
    """The keys of one DM cluster, read and written at a time in seconds."""

    def __init__(self, etcd: Etcd, now: float) -> None:
        self._etcd = etcd
        self._now = now

    def workers(self) -> list[Worker]:
        """All workers that ever registered and were not removed, by name."""
        alive, bound = self._under(_ALIVE), self._under(_BOUND)
        return [
            Worker(name, address, _stage(name in alive, name in bound), bound.get(name, ""))
            for name, address in sorted(self._under(_WORKER).items())
        ]

    def register(self, name: str, address: str, lease: int) -> None:
        """Register a worker, which is alive as long as its lease."""
        if self._under(_WORKER).get(name) != address:
            self._etcd.put(_WORKER + name.encode(), json.dumps(address).encode())
        self._etcd.put(_ALIVE + name.encode(), json.dumps(name).encode(), lease)

    def leave(self, name: str) -> None:
        """Deregister a worker that ends in good order."""
        self._etcd.delete(_ALIVE + name.encode(), b"", self._now)

    def take_out(self, name: str) -> None:
        """Remove a worker."""
        for prefix in (_WORKER, _ALIVE, _BOUND):
            self._etcd.delete(prefix + name.encode(), b"", self._now)

    def create_source(self, name: str) -> None:
        """Replicate a further source from now on."""
        self._etcd.put(_SOURCE + name.encode(), json.dumps(name).encode())

    def schedule(self) -> None:
        """Release the sources of offline workers, and bind unbound sources to free workers."""
        for worker in self.workers():
            if worker.stage == "offline" and worker.source:
                self._etcd.delete(_BOUND + worker.name.encode(), b"", self._now)
        homeless = sorted(set(self._under(_SOURCE)) - set(self._under(_BOUND).values()))
        free = [each.name for each in self.workers() if each.stage == "free"]
        for source, worker_name in zip(homeless, free, strict=False):
            self._etcd.put(_BOUND + worker_name.encode(), json.dumps(source).encode())

    def _under(self, prefix: bytes) -> dict[str, str]:
        return dict(self._entries(prefix))

    def _entries(self, prefix: bytes) -> Iterator[tuple[str, str]]:
        found = self._etcd.range(prefix, prefix[:-1] + bytes([prefix[-1] + 1]), self._now)
        return ((key.removeprefix(prefix).decode(), msgspec.json.decode(entry.value)) for key, entry in found)


def _stage(alive: bool, bound: bool) -> str:
    if not alive:
        return "offline"
    return "bound" if bound else "free"
