"""The records of a TiCDC cluster's captures in PD's etcd, under TiCDC's prefix (dataplane-apis.md 15.3).

Captures live as long as their leases. Tables are known by number. The assignment of a capture's tables stays recorded
after the capture is gone, until the owner reassigns them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from sandbox.dataplane.pd.etcd import Etcd

_PREFIX = b"/tidb/cdc/default/"
_CAPTURE = _PREFIX + b"__cdc_meta__/capture/"
_OWNER = _PREFIX + b"__cdc_meta__/owner"
_CHANGEFEED = _PREFIX + b"default/changefeed/info/"
_TASK = _PREFIX + b"default/task/status/"


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """A capture. `address` is advertised; a `stopping` one gets no tables."""

    id: str
    address: str
    version: str
    stopping: bool = False


_CAPTURES = msgspec.json.Decoder(CaptureInfo)


class Book:
    """The keys of one cluster of captures, read and written at a time in seconds."""

    def __init__(self, etcd: Etcd, now: float) -> None:
        self._etcd = etcd
        self._now = now

    # captures

    def captures(self) -> dict[str, CaptureInfo]:
        """The captures with a lease, by id."""
        found = (_CAPTURES.decode(value) for _, value in self._under(_CAPTURE))
        return {capture.id: capture for capture in found}

    def register(self, capture: CaptureInfo, lease: int) -> None:
        """Register a capture for as long as its lease lives."""
        self._etcd.put(_CAPTURE + capture.id.encode(), json.dumps(asdict(capture)).encode(), lease)

    def stop(self, capture: str) -> None:
        """Give a capture no more tables, for good."""
        key = _CAPTURE + capture.encode()
        entry = self._etcd.keys.get(key)
        if entry is not None:
            told = msgspec.json.decode(entry.value) | {"stopping": True}
            self._etcd.put(key, json.dumps(told).encode(), entry.lease)

    def leave(self, capture: str) -> None:
        """Deregister a capture, in good order."""
        self._etcd.delete(_CAPTURE + capture.encode(), b"", self._now)
        if self.owner() == capture:
            self.resign()

    # the owner

    def owner(self) -> str:
        """The id of the owner, or empty."""
        return next((value.decode() for _, value in self._range(_OWNER, b"")), "")

    def campaign(self, capture: str, lease: int) -> None:
        """Make a capture the owner for as long as its lease lives."""
        self._etcd.put(_OWNER, capture.encode(), lease)

    def resign(self) -> None:
        """Remove the owner."""
        self._etcd.delete(_OWNER, b"", self._now)

    # tables

    def create_changefeed(self, name: str, tables: int) -> None:
        """Replicate a number of tables from now on."""
        self._etcd.put(_CHANGEFEED + name.encode(), json.dumps({"tables": tables}).encode())

    def feed(self, name: str) -> dict[str, Any] | None:
        """What is recorded of a changefeed."""
        return next((msgspec.json.decode(value) for _, value in self._range(_CHANGEFEED + name.encode(), b"")), None)

    def record_feed(self, name: str, feed: dict[str, Any]) -> None:
        """Record a changefeed."""
        self._etcd.put(_CHANGEFEED + name.encode(), json.dumps(feed).encode())

    def tables(self) -> set[str]:
        """The tables of all changefeeds."""
        feeds = (
            (key.removeprefix(_CHANGEFEED).decode(), msgspec.json.decode(value))
            for key, value in self._under(_CHANGEFEED)
        )
        return {f"{name}/{number}" for name, feed in feeds for number in range(feed["tables"])}

    def assigned(self) -> dict[str, list[str]]:
        """The tables by capture, including captures that are gone."""
        return {key.removeprefix(_TASK).decode(): msgspec.json.decode(value) for key, value in self._under(_TASK)}

    def assign(self, capture: str, tables: Iterable[str]) -> None:
        """Record all tables of a capture."""
        key, wanted = _TASK + capture.encode(), sorted(tables)
        if wanted:
            self._etcd.put(key, json.dumps(wanted).encode())
        else:
            self._etcd.delete(key, b"", self._now)

    def _under(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._range(prefix, prefix[:-1] + bytes([prefix[-1] + 1]))

    def _range(self, key: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return ((each, entry.value) for each, entry in self._etcd.range(key, end, self._now))
